package vitals_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/vitals"
)

// TestSuspect: what an attempt failed by makes a replica unwell only if a probe fails as
// well, until one succeeds. It is probed less and less often, once at a time, and by itself.
func TestSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := vitals.New(slog.New(slog.DiscardHandler))
		defer v.Close()
		var broken atomic.Bool
		var probes atomic.Int32
		processes := vitals.Ability{Name: "processes", Probe: func(context.Context) error {
			probes.Add(1)
			if broken.Load() {
				return errors.New("resource temporarily unavailable")
			}
			return nil
		}}
		if err := v.Suspect(t.Context(), processes); err != nil || v.Unwell() != nil || v.Check(t.Context()) != nil {
			t.Errorf("what the next probe can do is lacking: %v, %v", err, v.Unwell())
		}
		broken.Store(true)
		for range 3 {
			if err := v.Suspect(t.Context(), processes); err == nil || !strings.Contains(err.Error(), "processes: resource") {
				t.Errorf("got %v", err)
			}
		}
		if v.Unwell() == nil || v.Check(t.Context()) == nil {
			t.Error("a replica that can start nothing is well")
		}
		<-wait.Briefly(t, time.Hour).Done()
		if n := probes.Load(); n < 300 || n > 800 {
			t.Errorf("%d probes in an hour", n)
		}
		broken.Store(false)
		<-wait.Briefly(t, 11*time.Second).Done()
		if err := v.Unwell(); err != nil {
			t.Errorf("it is well again, and says %v", err)
		}
		probes.Store(0)
		<-wait.Briefly(t, time.Hour).Done()
		if n := probes.Load(); n != 0 {
			t.Errorf("%d probes of a replica that is well", n)
		}
	})
}

// TestPartial: a replica that lacks what some commands need is not ready, and takes the others.
func TestPartial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := vitals.New(slog.New(slog.DiscardHandler))
		origin := vitals.Ability{Name: "origin of shop", Partial: true, Probe: func(context.Context) error { return errors.New("no route to host") }}
		if err := v.Suspect(t.Context(), origin); err == nil {
			t.Error("it is not lacking")
		}
		if v.Unwell() != nil || v.Check(t.Context()) == nil || v.Lacks(origin.Name) == nil || v.Lacks("origin of bank") != nil {
			t.Errorf("unwell %v, ready %v, of another %v", v.Unwell(), v.Check(t.Context()), v.Lacks("origin of bank"))
		}
		v.Close()
		if err := v.Suspect(t.Context(), origin); err != nil {
			t.Errorf("after its end: %v", err)
		}
	})
}

// TestSilentProbe: a probe that does not answer is one that failed, and who
// asks and is stopped does not wait for it.
func TestSilentProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := vitals.New(slog.New(slog.DiscardHandler))
		defer v.Close()
		silent := vitals.Ability{Name: "git", Probe: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		if err := v.Suspect(wait.Briefly(t, time.Second), silent); err != nil {
			t.Errorf("not known yet, and it says %v", err)
		}
		if err := v.Suspect(t.Context(), silent); err == nil {
			t.Error("it never answered, and is not lacking")
		}
	})
}

// TestOrigin: a replica that cannot reach an origin says so, since the project finds out by
// others whether it is away. One that fails again after the project has heard otherwise, and
// has not reached it since, is alone with that. It is alone for a while only: then all are.
func TestOrigin(t *testing.T) {
	now := time.Unix(0, 0)
	var o vitals.Origin
	fails := func(what string, known int, alone bool) {
		t.Helper()
		if got := o.Failed(known, now); got != alone {
			t.Errorf("%s: alone %v, want %v", what, got, alone)
		}
	}
	fails("the first that fails", 4, false)
	fails("one that was under way", 3, false)
	fails("another one that was under way", 4, false)
	o.Reached()
	fails("the only replica, whose own probe reached it meanwhile", 6, false)
	fails("the project has heard that it is reached, not from here", 7, true)
	fails("the next", 7, true)
	now = now.Add(time.Minute)
	fails("no other took it", 7, false)
	o.Reached()
	fails("once it was reached", 8, false)
	fails("a command that says nothing of what is known", 0, false)
}
