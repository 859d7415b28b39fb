package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// account counts the calls that it gets, and refuses them as long as it is told to.
type account struct {
	calls   atomic.Int32
	refusal atomic.Pointer[agent.Failure]
}

func (a *account) call(func()) error {
	a.calls.Add(1)
	if f := a.refusal.Load(); f != nil {
		return f
	}
	return nil
}

func (a *account) refuse(reason forge.FailureReason, until time.Time) {
	a.refusal.Store(&agent.Failure{Failure: forge.Failure{Reason: reason, Message: "no", Until: until}})
}

func reasonOf(err error) forge.FailureReason {
	if f, ok := errors.AsType[*agent.Failure](err); ok {
		return f.Reason
	}
	return ""
}

// A known limit is not run into again: calls fail at once with its end, until that has come. One
// call finds out whether it has; a limit that is far off is tried after an hour.
func TestKnownLimit(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	g := &Gates{now: func() time.Time { return now }}
	var a, other account
	until := now.Add(5 * time.Hour)
	a.refuse(forge.FailQuota, until)
	for range 5 {
		f, ok := errors.AsType[*agent.Failure](g.Call(t.Context(), "claude", Caller{}, a.call))
		if !ok || f.Reason != forge.FailQuota || !f.Until.Equal(until) {
			t.Fatalf("the call returned %v", f)
		}
	}
	if n := a.calls.Load(); n != 1 {
		t.Errorf("%d calls were made into a known limit, not 1", n)
	}
	if err := g.Call(t.Context(), "codex", Caller{}, other.call); err != nil || other.calls.Load() != 1 {
		t.Errorf("another account is closed too: %v", err)
	}
	a.refusal.Store(nil)
	now = now.Add(time.Hour)
	for range 3 {
		if err := g.Call(t.Context(), "claude", Caller{}, a.call); err != nil {
			t.Error(err)
		}
	}
	if n := a.calls.Load(); n != 4 {
		t.Errorf("%d calls, not 4", n)
	}
}

// What is no refusal of the account closes nothing: not a crash, and not a limit without an end.
func TestOtherFailures(t *testing.T) {
	g := &Gates{}
	for _, reason := range []forge.FailureReason{forge.FailCrashed, forge.FailOverloaded, forge.FailQuota, forge.FailRateLimited} {
		var a account
		a.refuse(reason, time.Time{})
		for range 3 {
			if err := g.Call(t.Context(), "claude", Caller{}, a.call); reasonOf(err) != reason {
				t.Errorf("%v, not %s", err, reason)
			}
		}
		if n := a.calls.Load(); n != 3 {
			t.Errorf("%s: %d calls, not 3", reason, n)
		}
	}
}

// After a refusal of the credentials one call tries them; all others wait for it, and fail or go
// on with it. So credentials that were mended are used, and those that were not cost one call.
func TestCredentials(t *testing.T) {
	for name, mended := range map[string]bool{"mended": true, "still wrong": false} {
		t.Run(name, func(t *testing.T) {
			g := &Gates{pause: time.Nanosecond}
			var a account
			a.refuse(forge.FailAuth, time.Time{})
			if err := g.Call(t.Context(), "claude", Caller{}, a.call); reasonOf(err) != forge.FailAuth {
				t.Fatal(err)
			}
			if mended {
				a.refusal.Store(nil)
			}
			begun, end := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			var refused atomic.Int32
			all.Go(func() {
				err := g.Call(t.Context(), "claude", Caller{}, func(accepted func()) error { // the probe
					close(begun)
					<-end
					return a.call(accepted)
				})
				if (reasonOf(err) == forge.FailAuth) == mended {
					t.Errorf("the probe: %v", err)
				}
			})
			<-begun
			g.mu.Lock()
			g.pause = time.Hour // after this probe none follows in the test
			g.mu.Unlock()
			for range 4 {
				all.Go(func() {
					if err := g.Call(t.Context(), "claude", Caller{}, a.call); reasonOf(err) == forge.FailAuth {
						refused.Add(1)
					}
				})
			}
			<-wait.Briefly(t, 20*time.Millisecond).Done()
			if n := a.calls.Load(); n != 1 {
				t.Errorf("%d calls were made while the probe goes on, not 1", n)
			}
			close(end)
			all.Wait()
			wantCalls, wantRefused := int32(2), int32(4)
			if mended {
				wantCalls, wantRefused = 6, 0
			}
			if calls := a.calls.Load(); calls != wantCalls || refused.Load() != wantRefused {
				t.Errorf("%d calls, %d refused; not %d and %d", calls, refused.Load(), wantCalls, wantRefused)
			}
		})
	}
}

// Others do not wait for the end of a long probe, but for the account to take it; and a probe that
// is stopped lets the next one try.
func TestProbe(t *testing.T) {
	g := &Gates{pause: time.Nanosecond}
	var a account
	a.refuse(forge.FailAuth, time.Time{})
	if err := g.Call(t.Context(), "claude", Caller{}, a.call); err == nil {
		t.Fatal("it was not refused")
	}
	a.refusal.Store(nil)
	stopped := errors.New("stopped")
	if err := g.Call(t.Context(), "claude", Caller{}, func(func()) error { return stopped }); !errors.Is(err, stopped) {
		t.Error(err)
	}
	err := g.Call(t.Context(), "claude", Caller{}, func(accepted func()) error {
		accepted()
		accepted()
		return g.Call(t.Context(), "claude", Caller{}, a.call) // another call, while the probe goes on
	})
	if err != nil || a.calls.Load() != 2 {
		t.Errorf("%v, %d calls", err, a.calls.Load())
	}
	// Who waits can be stopped.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.refuse(forge.FailAuth, time.Time{})
	_ = g.Call(t.Context(), "claude", Caller{}, a.call)
	err = g.Call(t.Context(), "claude", Caller{}, func(func()) error { return g.Call(ctx, "claude", Caller{}, a.call) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
}

// What a person resumed is tried at once, by one call: the gate may be closed
// still. Others of before are refused.
func TestResumed(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	g := &Gates{now: func() time.Time { return now }}
	var a account
	a.refuse(forge.FailAuth, time.Time{})
	call := func(project forge.ProjectID, known int) error {
		return g.Call(t.Context(), "claude", Caller{Project: project, Known: known}, a.call)
	}
	for range 3 {
		if err := call("p", 1); reasonOf(err) != forge.FailAuth {
			t.Fatal(err)
		}
	}
	for range 2 { // resumed, and refused once more
		if err := call("p", 2); reasonOf(err) != forge.FailAuth {
			t.Fatal(err)
		}
	}
	if err := call("q", 7); reasonOf(err) != forge.FailAuth { // has heard nothing since it was refused, which is now
		t.Fatal(err)
	}
	if n := a.calls.Load(); n != 2 {
		t.Errorf("%d calls, not 2", n)
	}
	a.refusal.Store(nil)
	if err := call("q", 7); reasonOf(err) != forge.FailAuth {
		t.Fatal(err)
	}
	if err := call("q", 8); err != nil {
		t.Error(err)
	}
	if err := call("p", 2); err != nil {
		t.Error(err)
	}
}
