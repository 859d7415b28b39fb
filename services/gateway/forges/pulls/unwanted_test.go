package pulls_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// TestClosedWithItsIntent: the pull request of an intent that was stopped is closed, with a word, once; not of one that goes on, that was
// stopped just now, or that cannot be asked for. It is opened again when the intent is retried.
func TestClosedWithItsIntent(t *testing.T) {
	onForges(t, func(t *testing.T, w *world) {
		t.Helper()
		type answer struct {
			status forge.Status
			since  time.Time
			err    error
		}
		now := time.Now()
		var says atomic.Value
		var asked atomic.Int32
		says.Store(answer{forge.StatusExecuting, now.Add(-time.Hour), nil})
		k := w.keeper(often, func(c *pulls.Config) {
			c.Intent = func(_ context.Context, key forge.Key) (forge.Status, time.Time, error) {
				if key != w.to {
					t.Errorf("asked for is %v", key)
				}
				asked.Add(1)
				a := says.Load().(answer)
				return a.status, a.since, a.err
			}
		})
		w.open(k)
		w.run(k)
		w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
		for what, a := range map[string]answer{
			"that goes on":         {forge.StatusExecuting, now.Add(-time.Hour), nil},
			"that failed":          {forge.StatusError, now.Add(-time.Hour), nil},
			"stopped just now":     {forge.StatusCancelled, now, nil},
			"that cannot be asked": {forge.StatusCancelled, now.Add(-time.Hour), errors.New("no runner answers")},
			"that is not there":    {},
		} {
			says.Store(a)
			before := asked.Load()
			wait.Until(t, "it was asked for twice", func() bool { return asked.Load() > before+1 })
			if state := w.state(); state != "open" {
				t.Errorf("the pull request of an intent %s is %s", what, state)
			}
		}
		says.Store(answer{forge.StatusCancelled, now.Add(-2 * time.Minute), nil})
		w.until("it is closed", func(p *forge.PullRequest) bool { return p.State == forge.PullClosed })
		if got := w.comments(); len(got) != 1 || !strings.Contains(got[0], "`it-crashes-0123456789` was cancelled") {
			t.Errorf("said is %q", got)
		}
		// A person opens it again, and keeps it, also where another gateway looks.
		w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "open"}, nil)
		other := w.keeper(often, func(c *pulls.Config) {
			c.Intent = func(context.Context, forge.Key) (forge.Status, time.Time, error) {
				asked.Add(1)
				return forge.StatusRejected, now.Add(-time.Hour), nil
			}
		})
		before, stop := asked.Load(), w.run(other)
		wait.Until(t, "the other has asked, too", func() bool { return asked.Load() > before })
		stop()
		if state := w.state(); state != "open" || len(w.comments()) != 1 {
			t.Errorf("opened by a person it is %s, with %q", state, w.comments())
		}
		w.as("ada", "PATCH", "/repos/"+w.repo+"/issues/1", object{"state": "closed"}, nil)
		says.Store(answer{forge.StatusExecuting, now, nil})
		w.in.Number = 1
		if p := w.open(k); p.State != forge.PullOpen {
			t.Errorf("after a retry it is %s", p.State)
		}
		if got := w.comments(); len(got) != 1 || !strings.HasPrefix(got[0], "Opened again. ") {
			t.Errorf("said is %q", got)
		}
		// Cancelled once more, it is closed once more.
		says.Store(answer{forge.StatusCancelled, now.Add(-2 * time.Minute), nil})
		wait.Until(t, "it is closed again", func() bool { return w.state() == "closed" && len(w.comments()) == 2 })
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
