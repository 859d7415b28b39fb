package implementer

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/repository/repotest"
)

type object = map[string]any

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
	w, model := claudeWorld(t, agenttest.Steps(
		writes("new.txt"), commits("one"), writes("left.txt"), agenttest.Answer(object{"summary": "wrote it"}),
		commits("two"), agenttest.Answer(object{"summary": "and more"}),
	))
	r := w.implement(command(forge.StepImplement, 1))
	if r.Failure != nil {
		t.Fatalf("%+v", r.Failure)
	}
	first := r.Implementation
	if first.Commits != 1 || first.Summary != "wrote it" || first.Leftover == "" || w.repo.Show(first.Head, "new.txt") != "new.txt" {
		t.Errorf("got %+v", first)
	}
	if w.repo.Show(first.Leftover, "left.txt") != "left.txt" || r.Session == "" || r.Usage.InputTokens == 0 || r.Model == "" {
		t.Errorf("got %+v", r)
	}

	again := command(forge.StepImplement, 2)
	again.Task.Base, again.Task.Head, again.Session, again.Feedback = first.Base, first.Head, r.Session, "more, please"
	second := w.implement(again)
	if second.Failure != nil || second.Session != r.Session {
		t.Fatalf("%+v, %+v", second, second.Failure)
	}
	if im := second.Implementation; im.Commits != 2 || im.Leftover != "" || w.repo.Git("log", "-1", "--format=%s", im.Head) != "two" {
		t.Errorf("got %+v", im)
	}
	requests := model.Requests("model")
	if last := requests[len(requests)-1]; !strings.Contains(string(last.Body), "more, please") || !strings.Contains(string(last.Body), "Carry out this task") {
		t.Error("the session did not go on with the feedback")
	}
}

// The process stops while the model thinks, after a commit: the next delivery goes
// on in the same session, and is told where the work is.
func TestClaudeGoesOnAfterAnInterruption(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var interrupted atomic.Bool
	steps := agenttest.Steps(writes("new.txt"), commits("half"))
	w, model := claudeWorld(t, func(r agenttest.Request) agenttest.Reply {
		if r.ToolResults == 2 && interrupted.CompareAndSwap(false, true) {
			stop()
			return agenttest.Reply{Fault: agenttest.HangStart}
		}
		if r.ToolResults == 2 {
			_, rest, _ := strings.Cut(r.LastUser, "are kept as commit\n")
			kept, _, _ := strings.Cut(rest, ",")
			return agenttest.Reply{Tool: "Bash", Input: object{"command": "git cherry-pick " + kept}}
		}
		if r.ToolResults > 2 {
			return agenttest.Answer(object{"summary": "finished"})(r)
		}
		return steps(r)
	})
	c := command(forge.StepImplement, 1)
	fails(t, w.imp.implement(ctx, c, silent), forge.FailKilled, "")
	r := w.implement(c)
	if r.Failure != nil {
		t.Fatalf("%+v", r.Failure)
	}
	if im := r.Implementation; im.Commits != 1 || im.Summary != "finished" || w.repo.Show(im.Head, "new.txt") != "new.txt" {
		t.Errorf("got %+v", im)
	}
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, "An earlier attempt was cut off") ||
		!strings.Contains(body, "Carry out this task") || !strings.Contains(body, "Go on with the task") {
		t.Errorf("the session did not go on: %s", last.LastUser)
	}
}

// An attempt fails after a commit: the next one begins anew, and is told where the
// work of the first one is.
func TestClaudeIsToldOfAFailedAttempt(t *testing.T) {
	w, model := claudeWorld(t, agenttest.Steps(
		writes("new.txt"), commits("half"), agenttest.Fail(400, "invalid_request_error", "no more"),
	))
	failed := w.implement(command(forge.StepImplement, 1))
	if failed.Failure == nil || failed.Session == "" {
		t.Fatalf("got %+v", failed)
	}
	half := w.repo.Git("for-each-ref", "--format=%(objectname)", "refs/forge/fix/fix-001/1/")
	if strings.Contains(half, "\n") || w.repo.Show(half, "new.txt") != "new.txt" {
		t.Fatalf("kept %q", half)
	}
	w.implement(command(forge.StepImplement, 2))
	requests := model.Requests("model")
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, half) || strings.Contains(body, "Go on with the task") {
		t.Errorf("it is not told of %s", half)
	}
}
