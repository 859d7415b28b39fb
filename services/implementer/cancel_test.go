package implementer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// stubborn is a command that nothing but a kill ends, with a child that survives it. As
// long as one of the two lives, the pipe is open.
const stubborn = `trap '' TERM INT HUP; mkfifo .git/alive; exec 9<>.git/alive; (trap '' TERM INT HUP; sleep 3600; sleep 3600) & ` +
	`echo begun > begun.txt; sleep 3600; sleep 3600`

// cancels has a worker start a command, and says that it is not wanted once its agent
// has begun. It returns what was reported when all processes were gone.
func (w *world) cancels(c forge.Command) forge.Result {
	w.t.Helper()
	results := w.results()
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	worker := w.worker()
	worker.Recheck = time.Hour // it hears of it, or not at all
	go func() { ended <- w.imp.Run(ctx, worker) }()
	w.opens(c)
	w.dispatch(c.To, forge.Effects{Commands: []forge.Command{c}})
	dir := filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001")
	w.waitFor(filepath.Join(dir, "begun.txt"))
	alive, err := os.OpenFile(filepath.Join(dir, ".git", "alive"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer alive.Close()
	gone := func(patience time.Duration) error {
		if err := alive.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, alive)
		return err
	}
	if err := gone(10 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("the agent's processes are gone before somebody says so: %v", err)
	}

	w.opens() // paused, or cancelled
	began := time.Now()
	w.dispatch(c.To, forge.Effects{Cancels: []forge.Attempt{c.Attempt}})
	if err := gone(wait.Patience); err != nil {
		w.t.Fatalf("the agent's processes live on: %v", err)
	}
	w.t.Logf("the agent's processes were gone after %s", time.Since(began))
	got := wait.For(w.t, results)
	w.t.Logf("that was reported, with the work kept, after %s", time.Since(began))
	stop()
	if err := <-ended; err != nil {
		w.t.Error(err)
	}
	return got
}

// opens journals that the intent waits for just these attempts.
func (w *world) opens(open ...forge.Command) {
	w.t.Helper()
	rec := forge.Record{Summary: forge.Summary{
		Key: command(forge.StepImplement, 1).To, Status: forge.StatusExecuting, RunSummary: forge.RunSummary{
			Tasks: []forge.TaskSummary{underWay},
		},
	}}
	for _, c := range open {
		rec.Summary.Open = append(rec.Summary.Open, c.Attempt)
	}
	w.journal(rec.Summary.Key, rec)
}

func (w *world) waitFor(file string) {
	w.t.Helper()
	wait.Until(w.t, file+" is there", func() bool { return exists(file) })
}

// A recipe that is cancelled while it runs is gone with all its processes, and what it
// did is kept. It begins anew when it is wanted again.
func TestCancelEndsARecipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("a recipe", map[string]string{"pfl-forge.yaml": settings + "  stubborn: {run: \"" + stubborn + "\"}\n"})
	got := w.cancels(recipe(1, "stubborn"))
	fails(t, got, forge.FailKilled, "not wanted any more")
	w.wasLeft("begun.txt")
	next := recipe(2, "write", "FILE", "new.txt", "TEXT", "x")
	input(&next).Continue, next.Resume = true, true
	if diff := cmp.Diff([]string{"new.txt"}, w.implemented(next).Files); diff != "" {
		t.Error(diff)
	}
}

// Claude Code is cancelled while a command of its own runs, after a commit and with more
// in the tree: it is gone with all its processes, what it cost is told, and when it is
// wanted again it goes on there, in its session.
func TestCancelEndsClaude(t *testing.T) {
	t.Parallel()
	var once atomic.Bool
	w, model := claudeWorld(t, func(r agenttest.Request) agenttest.Reply {
		said := func(text string) bool { return bytes.Contains(r.Body, []byte(text)) }
		switch {
		case !said("new.txt"):
			return writes("new.txt")(r)
		case !said("'half'"):
			return commits("half")(r)
		case !said("more.txt"):
			return writes("more.txt")(r)
		case once.CompareAndSwap(false, true):
			return agenttest.Use("Bash", object{"command": stubborn})(r)
		case !said("'whole'"):
			return commits("whole")(r)
		}
		return agenttest.Answer(object{"summary": "finished"})(r)
	})
	got := w.cancels(asked(1))
	fails(t, got, forge.FailKilled, "not wanted any more")
	if got.Usage.OutputTokens == 0 || got.Session != conversation {
		t.Errorf("it cost %+v in session %q", got.Usage, got.Session)
	}
	w.wasLeft("new.txt", "more.txt", "begun.txt")
	next := asked(2)
	input(&next).Continue, next.Resume = true, true
	w.finishes(next)
	goesOn(t, model)
	requests := model.Requests("model")
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "The working\\ndirectory is as it was then") {
		t.Error("it is not told where it is")
	}
}
