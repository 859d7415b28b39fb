package reviewer_test

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
)

// lister is a model that remembers which files its checkout has.
type lister struct {
	judge
	files []string
}

func (l *lister) Run(ctx context.Context, c agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	_ = fs.WalkDir(os.DirFS(c.Dir), ".", func(path string, _ fs.DirEntry, _ error) error {
		l.files = append(l.files, path)
		return nil
	})
	return l.judge.Run(ctx, c, sink)
}

// TestTheChangeDoesNotInstructItsReview has files that instruct agents in the change: the
// checkout of its review has none of them, and the diff has them all.
func TestTheChangeDoesNotInstructItsReview(t *testing.T) {
	l := &lister{}
	r, review := world(t, l)
	r.Git("checkout", "-q", "change")
	orders := []string{
		"CLAUDE.md", "Gemini.MD", "sub/AGENTS.md", ".claude/rules/a.md", "sub/.gemini/GEMINI.md",
		".github/copilot-instructions.md", ".forge/CLAUDE.md",
	}
	files := map[string]string{"docs/rules.md": "imported\n", "\xff/a.txt": "in a directory whose name is no UTF-8\n"}
	for _, name := range orders {
		files[name] = "CANARY of " + name + ", see @docs/rules.md\n"
	}
	r.Commit("orders", files)
	r.Git("checkout", "-q", "main")
	if got := review(command(r, "", "")); got.Failure() != nil {
		t.Fatal(got.Failure())
	}
	for _, name := range orders {
		if slices.Contains(l.files, name) {
			t.Errorf("the checkout has %s", name)
		}
		if !strings.Contains(l.calls[0].Prompt, "CANARY of "+name) {
			t.Errorf("the diff lacks %s", name)
		}
	}
	if !slices.Contains(l.files, "docs/rules.md") || !slices.Contains(l.files, "new.txt") {
		t.Errorf("the checkout has only %q", l.files)
	}
}
