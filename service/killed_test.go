package service_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/service/begun"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// TestKilledInEachAttempt: an attempt that kills its replica is delivered again, and the third
// time it is reported, and not begun any more. Rules that do not know the reason take it for
// a program that crashed, of which they make only so many attempts.
func TestKilledInEachAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patience time.Duration
		want     forge.FailureReason
	}{
		"told":                         {elsewhere.Patience, forge.FailKilledReplica},
		"by rules that do not know it": {0, forge.FailCrashed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bustest.StartServer(t)
			r := newRunner(t, s.Connect(t))
			state := t.TempDir()
			cmd := analyze(1)
			cmd.Patience = c.patience
			for life := range begun.Most {
				replica := startChildThat(t, "dies", state, "--server", s.URL(), "--replica=w1")
				if life == 0 {
					replica.becomes("ok")
					r.start(cmd)
				}
				if code := replica.exitCode(); code != -1 {
					t.Fatalf("life %d ends with %d", life, code)
				}
				if len(r.results) > 0 {
					t.Fatalf("after %d lives there is %+v", life+1, <-r.results)
				}
			}
			startChildThat(t, "dies", state, "--server", s.URL(), "--replica=w1")
			got := r.result()
			f := got.Failure()
			if f == nil || f.Reason != c.want || !strings.HasSuffix(f.Message, ": w1, w1, w1") || got.Usage != (forge.Usage{}) {
				t.Errorf("got %+v, failure %+v", got, f)
			}
		})
	}
}

// TestKilledWhileItStops: a replica that was asked to stop and is killed when its time is over,
// as in a roll-out, says nothing about what it was doing, however often that is.
func TestKilledWhileItStops(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	r := newRunner(t, s.Connect(t))
	state := t.TempDir()
	for life := range begun.Most {
		c := startChildThat(t, "agent", state, "--server", s.URL(), "--replica=w1", "--drain-timeout=1h")
		c.becomes("ok")
		if life == 0 {
			r.start(analyze(1))
		}
		c.waitFor("start") // of the attempt
		c.signal(syscall.SIGTERM)
		c.becomes("draining")
		c.signal(syscall.SIGKILL)
		c.exitCode()
	}
	c := startChildThat(t, "agent", state, "--server", s.URL(), "--replica=w1")
	c.waitFor("start")
	if len(r.results) > 0 {
		t.Errorf("there is %+v", <-r.results)
	}
}

// TestSuspectsRunAlone: of several attempts that were killed together as often as may be, one at a
// time runs in a replica, so that the next kill is of the one that kills. Others go on beside it.
func TestSuspectsRunAlone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	dir := t.TempDir()
	log := begun.New(filepath.Join(dir, "begun"), slog.New(slog.DiscardHandler))
	began, release := make(chan forge.TaskID, 10), make(chan struct{})
	w := sharedReplica(t, b, "w1", func(_ context.Context, c forge.Command, _ service.Progress) forge.Result {
		began <- c.Attempt.Task
		<-release
		return found()
	})
	w.Outbox, w.Parallel = outbox(t, dir), 4
	var list []forge.Command
	for _, task := range []forge.TaskID{"fix-login-001", "fix-login-002", "fix-login-003"} {
		cmd := analyze(1)
		cmd.Attempt.Task = task
		if list = append(list, cmd); task != "fix-login-003" {
			log.Begin(cmd.To, cmd.Attempt, "w1 b", []string{"w1 a"})
		}
	}
	killer := analyze(1)
	killer.Attempt.Task, killer.Patience = "fix-login-004", elsewhere.Patience
	log.Begin(killer.To, killer.Attempt, "w1 c", []string{"w1 a", "w1 b"})
	r.want(append(list, killer)...)
	workerRun(t, w)
	r.dispatch(forge.Effects{Commands: list[:2]})
	first := wait.For(t, began)
	r.dispatch(forge.Effects{Commands: []forge.Command{killer}})
	if got := r.result(); got.Attempt.Task != killer.Attempt.Task || got.Failure() == nil || got.Failure().Reason != forge.FailKilledReplica {
		t.Errorf("beside %s there is the result %+v, %+v", first, got, got.Failure())
	}
	r.dispatch(forge.Effects{Commands: list[2:]})
	if second := wait.For(t, began); first == "fix-login-003" || second != "fix-login-003" {
		t.Errorf("%s runs beside %s", second, first)
	}
	release <- struct{}{}
	release <- struct{}{}
	if last := wait.For(t, began); last == first || last == "fix-login-003" {
		t.Errorf("%s runs once more", last)
	}
	close(release)
	for range list {
		if got := r.result(); got.Failure() != nil {
			t.Errorf("got %+v", got.Failure())
		}
	}
}

// TestKilledBesideAtWork: a replica that starts again while another one is at the attempt leaves
// it alone. Who was killed is told once that one has stopped without a result, and
// is of no interest after one with a result.
func TestKilledBesideAtWork(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"done": true, "stopped": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t)
			r := newRunner(t, b)
			h := newBlocked()
			other := sharedReplica(t, b, "other", h.do)
			other.Grace = time.Millisecond
			stop, _ := drained(t, other)
			cmd := analyze(1)
			cmd.Patience = elsewhere.Patience
			r.start(cmd)
			wait.For(t, h.began)

			dir := t.TempDir()
			log := begun.New(filepath.Join(dir, "begun"), slog.New(slog.DiscardHandler))
			log.Begin(cmd.To, cmd.Attempt, "w1 c", []string{"w1 a", "w1 b"})
			again := sharedReplica(t, b, "w1", func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
			again.Outbox, again.Recheck = outbox(t, dir), 20*time.Millisecond
			workerRun(t, again)
			if !done {
				stop()
				got := r.result()
				if f := got.Failure(); f == nil || f.Reason != forge.FailKilledReplica || !strings.HasSuffix(f.Message, ": w1, w1, w1") {
					t.Errorf("got %+v", f)
				}
				return
			}
			close(h.released)
			if got := r.result(); got.Replica != "other" || got.Failure() != nil {
				t.Errorf("got %+v", got)
			}
			r.want()
			wait.Until(t, "nothing is left to be told", func() bool { return len(files(t, filepath.Join(dir, "begun"))) == 0 })
		})
	}
}
