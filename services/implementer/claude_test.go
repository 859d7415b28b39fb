package implementer

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

type object = map[string]any

// conversation is what the runner has named the agent's session.
var conversation = agent.NewSessionID()

// asked is a command for an agent.
func asked(number int) forge.Command {
	c := command(forge.StepImplement, number)
	c.Session = conversation
	return c
}

// rework is asked again, with what was wrong.
func rework(im *forge.Implementation, feedback string) forge.Command {
	c := asked(2)
	c.Task.Base, c.Task.Head, c.Resume, input(&c).Feedback = im.Base, im.Head, true, feedback
	return c
}

func claudeWorld(t *testing.T, scenario agenttest.Scenario) (*world, *agenttest.Server) {
	t.Helper()
	cli, model := repotest.Claude(t, scenario)
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	return worldOn(t, r, repotest.Local(t, r.Dir, cli), bustest.Start(t)), model
}

func writes(file string) agenttest.Step {
	return agenttest.UseIn("Write", func(dir string) any {
		return object{"file_path": filepath.Join(dir, file), "content": file + "\n"}
	})
}

func commits(message string) agenttest.Step {
	return agenttest.Use("Bash", object{"command": "git add -A && git commit -q -m '" + message + "'"})
}

// The real CLI commits, and takes up its session when its work was rejected.
func TestClaudeImplementsAndReworks(t *testing.T) {
	t.Parallel()
	begin := agenttest.Steps(writes("new.txt"), commits("one"), writes("left.txt"), agenttest.Answer(object{"summary": "wrote it"}))
	w, model := claudeWorld(t, func(r agenttest.Request) agenttest.Reply {
		switch {
		case !bytes.Contains(r.Body, []byte("more, please")):
			return begin(r)
		case !bytes.Contains(r.Body, []byte("'two'")):
			return commits("two")(r)
		}
		return agenttest.Answer(object{"summary": "and more"})(r)
	})
	r := w.implement(asked(1))
	if r.Failure() != nil {
		t.Fatalf("%+v", r.Failure())
	}
	first := forge.As[*forge.Implementation](r.Output)
	if first.Commits != 1 || first.Summary != "wrote it" || first.Leftover == "" || w.repo.Show(first.Head, "new.txt") != "new.txt" {
		t.Errorf("got %+v", first)
	}
	if w.repo.Show(first.Leftover, "left.txt") != "left.txt" || r.Session == "" || r.Usage.InputTokens == 0 || r.Model == "" {
		t.Errorf("got %+v", r)
	}

	second := w.implement(rework(first, "more, please"))
	if second.Failure() != nil || second.Session != conversation || r.Session != conversation {
		t.Fatalf("%+v, %+v", second, second.Failure())
	}
	if im := forge.As[*forge.Implementation](second.Output); im.Commits != 2 || im.Leftover != "" || w.repo.Git("log", "-1", "--format=%s", im.Head) != "two" {
		t.Errorf("got %+v", im)
	}
	requests := model.Requests("model")
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "more, please") || !strings.Contains(string(last.Body), "Carry out this task") {
		t.Error("the session did not go on with the feedback")
	}
}

// The process stops while the model thinks, after a commit and with more in the tree:
// the next delivery goes on there, in the same session.
func TestClaudeGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	w, model := claudeWorld(t, interrupted(stop))
	c := asked(1)
	fails(t, w.imp.implement(ctx, c, silent), forge.FailKilled, "")
	w.wasLeft("new.txt", "more.txt")
	w.finishes(c)
	goesOn(t, model)
}

// interrupted is a scenario that calls stop once, after a commit and with more in the
// tree.
func interrupted(stop func()) agenttest.Scenario { return cutOff(stop, object{"summary": "finished"}) }

func cutOff(stop func(), answer object) agenttest.Scenario {
	var done atomic.Bool
	steps := agenttest.Steps(writes("new.txt"), commits("half"), writes("more.txt"), commits("whole"), agenttest.Answer(answer))
	return func(r agenttest.Request) agenttest.Reply {
		if r.ToolResults == 3 && done.CompareAndSwap(false, true) {
			stop()
			return agenttest.Reply{Fault: agenttest.HangStart}
		}
		return steps(r)
	}
}

// finishes makes sure that what was interrupted comes to its end.
func (w *world) finishes(c forge.Command) forge.Result {
	w.t.Helper()
	r := w.implement(c)
	if r.Failure() != nil || r.Session != conversation {
		w.t.Fatalf("%+v, %+v", r, r.Failure())
	}
	im := forge.As[*forge.Implementation](r.Output)
	if im.Commits != 2 || im.Leftover != "" || im.Summary != "finished" || w.repo.Show(im.Head, "more.txt") != "more.txt" {
		w.t.Errorf("got %+v", im)
	}
	return r
}

// wasLeft makes sure that files are kept under the task's first attempt.
func (w *world) wasLeft(files ...string) {
	w.t.Helper()
	for _, f := range files {
		if !slices.ContainsFunc(w.refs("/fix-001/1/"), func(ref string) bool {
			return w.repo.Git("ls-tree", "--name-only", ref, f) != ""
		}) {
			w.t.Errorf("%s is kept by none of %q", f, w.refs(""))
		}
	}
}

// goesOn makes sure that the model was last asked in the conversation in which it was
// asked first.
func goesOn(t *testing.T, model *agenttest.Server) {
	t.Helper()
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, "Carry out this task") || !strings.Contains(body, "Go on with the task") {
		t.Errorf("the session did not go on: %s", last.LastUser)
	}
	for _, r := range requests {
		if got := r.Header.Get("X-Claude-Code-Session-Id"); got != conversation {
			t.Errorf("a request is of session %s", got)
		}
	}
}

// An attempt fails after a commit: the next one begins anew, and is told where the
// work of the first one is.
func TestClaudeIsToldOfAFailedAttempt(t *testing.T) {
	t.Parallel()
	w, model := claudeWorld(t, agenttest.Steps(
		writes("new.txt"), commits("half"), agenttest.Fail(400, "invalid_request_error", "no more"),
	))
	failed := w.implement(asked(1))
	if failed.Failure() == nil || failed.Session == "" {
		t.Fatalf("got %+v", failed)
	}
	half := w.repo.Git("for-each-ref", "--format=%(objectname)", "refs/forge/fix/fix-001/1/")
	if strings.Contains(half, "\n") || w.repo.Show(half, "new.txt") != "new.txt" {
		t.Fatalf("kept %q", half)
	}
	other := asked(2)
	other.Session = agent.NewSessionID()
	w.implement(other)
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, half) || strings.Contains(body, "Go on with the task") {
		t.Errorf("it is not told of %s", half)
	}
}
