package reviewer_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

type object = map[string]any

// claim is an answer that something is met, with one piece of evidence.
func claim(number int, kind, ref, quote string) object {
	return object{"number": number, "met": true, "confidence": 0.9, "note": "it is there", "evidence": []object{{"kind": kind, "ref": ref, "quote": quote}}}
}

// unmet is an answer that something is not met.
func unmet(number int, note string) object {
	return object{"number": number, "met": false, "confidence": 1, "note": note, "evidence": []object{}}
}

// The real CLI reads around the change and judges it.
func TestClaudeReviews(t *testing.T) {
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "new.txt")} }),
		agenttest.Answer(object{"requirements": []object{claim(1, "diff", "new.txt:1", "new")}, "verdict": "rejected", "issues": []string{"new.txt: too new"}}),
	))
	r, review := world(t, cli)
	got := review(command(r, "", ""))
	if got.Failure() != nil {
		t.Fatalf("%+v", got.Failure())
	}
	want := &forge.Review{
		TaskID: "fix-001", Head: string(r.Head("change")), Verdict: forge.VerdictRejected, Issues: []string{"new.txt: too new"},
		By: forge.Reviewer{Agent: "claude", Model: "sonnet"},
		Claims: []forge.Claim{{Number: 1, Text: "A file", Met: true, Confidence: 0.9, Note: "it is there", Evidence: []forge.Citation{
			{Kind: forge.CitationDiff, Ref: "new.txt:1", Quote: "new", Resolved: true},
		}}},
	}
	if diff := cmp.Diff(want, forge.As[*forge.Review](got.Output)); diff != "" || got.Agent != "claude" || got.Usage.InputTokens == 0 {
		t.Errorf("%+v\n%s", got, diff)
	}
	requests := model.Requests("model")
	if !strings.Contains(requests[0].LastUser, "+new") || !strings.Contains(requests[1].LastResult, "new") {
		t.Errorf("prompt %q, Read gave %q", requests[0].LastUser, requests[1].LastResult)
	}
}

// The real CLI reads a change of 3 MB in parts, each with one call of Read, and sees
// every line of it.
func TestClaudeReadsALargeChange(t *testing.T) {
	parts := regexp.MustCompile(`\.forge/change-[0-9]+\.diff`)
	cli, model := repotest.Claude(t, func(r agenttest.Request) agenttest.Reply {
		names := parts.FindAllString(r.LastUser, -1)
		if r.ToolResults < len(names) {
			return agenttest.Reply{Tool: "Read", Input: object{"file_path": filepath.Join(r.Dir, names[r.ToolResults])}}
		}
		return agenttest.Answer(object{
			"requirements": []object{claim(1, "diff", "much.txt:40000", "number 039999")}, "verdict": "approved", "issues": []string{},
		})(r)
	})
	r, review := world(t, cli)
	const lines = 40_000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "this is the line with the number %06d, and it has about eighty characters\n", i)
	}
	r.Git("checkout", "-q", "change")
	r.Commit("much", map[string]string{"much.txt": b.String(), "long.txt": strings.Repeat("x", 5000) + "the end of a long line"})
	r.Git("checkout", "-q", "main")
	got := review(command(r, "", ""))
	if out := forge.As[*forge.Review](got.Output); got.Failure() != nil || out.Verdict != forge.VerdictApproved {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	var read strings.Builder
	for _, q := range model.Requests("model") {
		read.WriteString(q.LastResult)
	}
	seen := regexp.MustCompile(`number ([0-9]{6}),`).FindAllString(read.String(), -1)
	if len(seen) != lines || !strings.Contains(read.String(), "the end of a long line") {
		t.Errorf("%d of %d lines were read", len(seen), lines)
	}
}
