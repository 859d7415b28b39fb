package reviewer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/repository/repotest"
)

type object = map[string]any

// The real CLI reads around the change and judges it.
func TestClaudeReviews(t *testing.T) {
	cli, model := repotest.Claude(t, agenttest.Steps(
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": filepath.Join(dir, "new.txt")} }),
		agenttest.Answer(object{"verdict": "rejected", "issues": []string{"new.txt: too new"}}),
	))
	r, review := world(t, cli)
	got := review(command(r, "", ""))
	if got.Failure != nil {
		t.Fatalf("%+v", got.Failure)
	}
	want := &forge.Review{
		TaskID: "fix-001", Head: string(r.Head("change")), Verdict: forge.VerdictRejected, Issues: []string{"new.txt: too new"},
	}
	if diff := cmp.Diff(want, got.Review); diff != "" || got.Agent != "claude" || got.Usage.InputTokens == 0 {
		t.Errorf("%+v\n%s", got, diff)
	}
	requests := model.Requests("model")
	if !strings.Contains(requests[0].LastUser, "+new") || !strings.Contains(requests[1].LastResult, "new") {
		t.Errorf("prompt %q, Read gave %q", requests[0].LastUser, requests[1].LastResult)
	}
}
