package reviewer_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/codex"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

// Of all CLIs codex shortens soonest what a tool returns: it too sees every line of a
// large change.
func TestCodexReadsALargeChange(t *testing.T) {
	parts := regexp.MustCompile(`\.forge/change-[0-9]+\.diff \(`)
	model := agenttest.NewServer(t)
	view := "" // the checkout; known once there is a repository
	base := model.Script("model", func(r agenttest.Request) agenttest.Reply {
		if r.ToolResults == len(parts.FindAllString(string(r.Body), -1)) {
			return agenttest.Say(`{"requirements": [{"number": 1, "met": true, "confidence": 1, "note": "all of it",
				"evidence": [{"kind": "diff", "ref": "much.txt:2000", "quote": "number 001999"}]}], "verdict": "approved", "issues": []}`)(r)
		}
		path := filepath.Join(view, ".forge", fmt.Sprintf("change-%03d.diff", r.ToolResults+1))
		return agenttest.Use("exec_command", object{"cmd": "cat " + path})(r)
	})
	r, review := world(t, codex.New(cli.Options{
		Path: agenttest.CLI(t, "codex"), Owner: process.NewOwner(t.TempDir()),
		Env: []string{"OPENAI_API_KEY=test-key", "OPENAI_BASE_URL=" + base + "/v1", cli.RetriesVariable + "=0"},
	}))
	view = filepath.Join(r.Dir, ".forge", "worktrees", "fix-001-review")
	const lines = 2000
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "this is the line with the number %06d, and it has about eighty characters\n", i)
	}
	r.Git("checkout", "-q", "change")
	r.Commit("much", map[string]string{"much.txt": b.String()})
	r.Git("checkout", "-q", "main")
	c := command(r, "", "")
	c.Intent.Agent = "codex"
	got := review(c)
	if out := forge.As[*forge.Review](got.Output); got.Failure() != nil || out.Verdict != forge.VerdictApproved {
		t.Fatalf("%+v, %+v", got.Failure(), out)
	}
	read := ""
	for _, q := range model.Requests("model") {
		read += q.LastResult
	}
	if seen := regexp.MustCompile(`number [0-9]{6},`).FindAllString(read, -1); len(seen) != lines || strings.Contains(read, "truncated") {
		t.Errorf("%d of %d lines were read", len(seen), lines)
	}
}
