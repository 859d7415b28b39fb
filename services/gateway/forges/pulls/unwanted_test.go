package pulls_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// TestClosedWithItsIntent: the pull request of an intent that was stopped is
// closed, with a word, once; not of one that goes on, that was stopped just now,
// or that cannot be asked for. It is opened again when the intent is retried.
func TestClosedWithItsIntent(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	onForges(t, func(t *testing.T, w *world) {
		t.Helper()
		type answer struct {
			pulls.Stopped

			err error
		}
		now := time.Now()
		lately := now.Add(time.Hour) // however long this test takes
		var says atomic.Value
		var asked atomic.Int32
		says.Store(answer{})
		k := w.keeper(often, func(c *pulls.Config) {
			c.Stopped = func(_ context.Context, key forge.Key, task forge.TaskID) (pulls.Stopped, error) {
				if key != w.to || task != attempt.Task {
					t.Errorf("asked for is %v, %s", key, task)
				}
				asked.Add(1)
				a := says.Load().(answer)
				return a.Stopped, a.err
			}
		})
		w.open(k)
		w.run(k)
		w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
		for what, a := range map[string]answer{
			"that goes on":             {},
			"stopped just now":         {pulls.Stopped{Status: forge.StatusCancelled, At: lately}, nil},
			"whose task was just now":  {pulls.Stopped{Status: forge.StatusCancelled, Task: attempt.Task, At: lately}, nil},
			"that cannot be asked for": {pulls.Stopped{Status: forge.StatusCancelled, At: now.Add(-time.Hour)}, errors.New("no runner answers")},
		} {
			says.Store(a)
			before := asked.Load()
			wait.Until(t, "it was asked for twice", func() bool { return asked.Load() > before+1 })
			if state := w.state(); state != "open" {
				t.Errorf("the pull request of an intent %s is %s", what, state)
			}
		}
		stopped := pulls.Stopped{Status: forge.StatusCancelled, At: now.Add(-2 * time.Minute)}
		says.Store(answer{stopped, nil})
		w.until("it is closed", func(p *forge.PullRequest) bool { return p.State == forge.PullClosed })
		if got := w.comments(); len(got) != 1 || !strings.Contains(got[0], "`it-crashes-0123456789` was cancelled") {
			t.Errorf("said is %q", got)
		}
		// A person opens it again, and keeps it, also where another gateway looks.
		w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "open"}, nil)
		other := w.keeper(often, func(c *pulls.Config) {
			c.Stopped = func(context.Context, forge.Key, forge.TaskID) (pulls.Stopped, error) {
				asked.Add(1)
				return pulls.Stopped{Status: forge.StatusRejected, At: now.Add(-time.Hour)}, nil
			}
		})
		before, stop := asked.Load(), w.run(other)
		wait.Until(t, "the other has asked, too", func() bool { return asked.Load() > before })
		stop()
		if state := w.state(); state != "open" || len(w.comments()) != 1 {
			t.Errorf("opened by a person it is %s, with %q", state, w.comments())
		}
		w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil)
		says.Store(answer{})
		w.in.Number = 1
		if p := w.open(k); p.State != forge.PullOpen {
			t.Errorf("after a retry it is %s", p.State)
		}
		if got := w.comments(); len(got) != 1 || !strings.HasPrefix(got[0], "Opened again. ") {
			t.Errorf("said is %q", got)
		}
		// Cancelled once more, and its task alone, it is closed once more.
		stopped.Task = attempt.Task
		says.Store(answer{stopped, nil})
		wait.Until(t, "it is closed again", func() bool { return w.state() == "closed" && len(w.comments()) == 2 })
		if got := w.comments()[1]; !strings.HasPrefix(got, "Closed: the task `"+string(stopped.Task)+"` was cancelled. ") {
			t.Errorf("said is %q", got)
		}
	})
}

// state returns the state of the first pull request.
func (w *world) state() string {
	w.t.Helper()
	var got struct{ State string }
	w.as("eve", "GET", "/repos/"+w.repo+"/pulls/1", nil, &got)
	return got.State
}

// comments returns what is said below the first pull request.
func (w *world) comments() (list []string) {
	w.t.Helper()
	var got []struct{ Body string }
	w.as("eve", "GET", "/repos/"+w.repo+"/issues/1/comments", nil, &got)
	for _, c := range got {
		list = append(list, c.Body)
	}
	return list
}
