package implementer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// listener is a model that keeps what it is told, and commits twice in every call.
type listener struct{ told []string }

func (l *listener) Name() string { return "claude" }

func (l *listener) Run(ctx context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	l.told = append(l.told, c.Prompt)
	for i := range 2 {
		name := fmt.Sprintf("call%d-%d.txt", len(l.told), i)
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(name), 0o600); err != nil {
			return agent.Outcome{}, agent.AsFailure(err)
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", "git add -A && git commit -q -m 'Add "+name+"'")
		cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return agent.Outcome{}, agent.Fail(forge.FailCrashed, "%v: %s", err, out)
		}
	}
	return agent.Outcome{Session: c.Session.ID, Answer: []byte(`{"summary":"done"}`)}, nil
}

// An agent that was not there is told what is on the branch, newest first, and what
// was said of it.
func TestWhoTakesOverIsToldWhatIsThere(t *testing.T) {
	t.Parallel()
	l := &listener{}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	w := worldOn(t, r, repotest.Local(t, r.Dir, l), bustest.Start(t))
	first := w.implemented(command(forge.StepImplement, 1))
	again := command(forge.StepImplement, 2)
	again.Task.Base, again.Task.Head, input(&again).Feedback = first.Base, first.Head, "a.txt: wrong"
	input(&again).Reviews = []forge.Review{{Head: first.Head, Verdict: forge.VerdictRejected, Issues: []string{"a.txt: wrong"}}}
	if im := w.implemented(again); im.Commits != 4 {
		t.Errorf("got %+v", im)
	}
	if len(l.told) != 2 || strings.Contains(l.told[0], "What was done before") {
		t.Fatalf("told %q", l.told)
	}
	said := l.told[1]
	newest, oldest := strings.Index(said, first.Head[:12]+" Add call1-1.txt\n"), strings.Index(said, " Add call1-0.txt\n")
	if newest < 0 || oldest < newest || !strings.Contains(said, "What was done before") || strings.Count(said, "a.txt: wrong") != 1 {
		t.Errorf("told:\n%s", said)
	}
	if !strings.Contains(said, "BROKEN") {
		t.Errorf("the project's commands are missing:\n%s", said)
	}
}
