package service_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// waiting is a command that is answered after a moment if no replica takes it.
func waiting(n int) forge.Command {
	c := analyze(n)
	c.Patience = 80 * time.Millisecond
	return c
}

// sharedReplica is a worker beside others, whose attempts hold leases.
func sharedReplica(t *testing.T, b *bus.Bus, name forge.ReplicaID, work do) *service.Worker {
	t.Helper()
	w := worker(t, b, work)
	w.Replica, w.Shared, w.Handlers[0].Lease = name, true, true
	return w
}

// sickness makes a replica unwell until it is healed, and counts how often it was asked for.
type sickness struct {
	healed atomic.Bool
	asked  atomic.Int32
}

func (s *sickness) unwell(context.Context, bool) error {
	if s.healed.Load() {
		return nil
	}
	s.asked.Add(1)
	return syscall.ENOSPC
}

// TestSickBesideAtWork: a replica that is not well gets a command that another one
// is carrying out. It does not answer for it, and the result is what that one found.
func TestSickBesideAtWork(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	h := newBlocked()
	well := sharedReplica(t, b, "well", h.do)
	well.Parallel = 1
	workerRun(t, well)
	r.start(waiting(1))
	wait.For(t, h.began)
	var ill sickness
	other := sharedReplica(t, b, "ill", h.do)
	other.Unwell = ill.unwell
	workerRun(t, other)
	lease, err := subjects.Lease(key, "", forge.StepAnalyze)
	if err != nil {
		t.Fatal(err)
	}
	s.DeliverAgain(t, lease)
	wait.Until(t, "the sick replica has had it for long enough to answer", func() bool { return ill.asked.Load() >= 7 }) // the other one had the first delivery
	select {
	case got := <-r.results:
		t.Errorf("a command that is being carried out is answered: %+v", got)
	case <-wait.Briefly(t, 300*time.Millisecond).Done():
	}
	close(h.released)
	if got := r.result(); got.Replica != "well" || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
}

// TestSickBesideBusy: a command that waits for a well replica that is at work on something else
// is not answered by a sick one, for however long: nobody knows yet that no replica can do it.
func TestSickBesideBusy(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	busy := sharedReplica(t, b, "busy", func(ctx context.Context, c forge.Command, p service.Progress) forge.Result {
		if c.Attempt.Task != "" {
			return found()
		}
		return h.do(ctx, c, p)
	})
	busy.Parallel = 1
	workerRun(t, busy)
	r.start(waiting(1))
	wait.For(t, h.began)
	var ill sickness
	other := sharedReplica(t, b, "ill", nil)
	other.Unwell = ill.unwell
	workerRun(t, other)
	next := waiting(2)
	next.Attempt.Task, next.Patience = "next-001", 800*time.Millisecond // and as long for the busy one, once it is free
	r.want(waiting(1), next)
	r.dispatch(forge.Effects{Commands: []forge.Command{next}})
	wait.Until(t, "the sick replica has had it for long enough to answer", func() bool { return ill.asked.Load() >= 20 || len(r.results) > 0 })
	if len(r.results) > 0 {
		t.Errorf("it is answered while a replica is busy that may do it: %+v", <-r.results)
	}
	close(h.released)
	for range 2 {
		if got := r.result(); got.Failure() != nil || got.Replica != "busy" {
			t.Errorf("got %+v, failure %+v", got, got.Failure())
		}
	}
}

// TestSickBesideUnable: once the busy replica was given the command and cannot do it either, that
// none can is answered, also while that one is at work on something else.
func TestSickBesideUnable(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	tried := make(chan struct{}, 100)
	busy := sharedReplica(t, b, "busy", func(ctx context.Context, c forge.Command, p service.Progress) forge.Result {
		if c.Attempt.Task == "" {
			return h.do(ctx, c, p)
		}
		tried <- struct{}{}
		elsewhere.NotHere(ctx, errors.New("codex is not in PATH"), true)
		return forge.Result{Output: &forge.Failure{Reason: forge.FailMissingCLI, Message: "codex is not in PATH"}}
	})
	busy.Parallel = 1
	workerRun(t, busy)
	var ill sickness
	other := sharedReplica(t, b, "ill", nil)
	other.Unwell = ill.unwell
	workerRun(t, other)
	lacking := waiting(2)
	lacking.Attempt.Task, lacking.Patience = "next-001", 2*time.Second
	r.start(lacking)
	wait.For(t, tried)
	r.want(waiting(1), lacking)
	r.dispatch(forge.Effects{Commands: []forge.Command{waiting(1)}})
	wait.For(t, h.began)
	if got := r.result(); got.Attempt.Task != "next-001" || got.Failure() == nil || got.Failure().Reason != forge.FailReplica {
		t.Errorf("got %+v, failure %+v", got, got.Failure())
	}
	close(h.released)
	if got := r.result(); got.Failure() != nil {
		t.Errorf("got %+v, failure %+v", got, got.Failure())
	}
}

// TestSickDropsUnwanted: what is not wanted any more is not answered by a
// replica that is not well, and is gone.
func TestSickDropsUnwanted(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	r.want()
	r.dispatch(forge.Effects{Commands: []forge.Command{waiting(1)}})
	w := sharedReplica(t, b, "ill", nil)
	w.Unwell = (&sickness{}).unwell
	workerRun(t, w)
	wait.Until(t, "the command is gone", func() bool {
		list, err := b.Commands.Queues(wait.Context(t))
		return err == nil && len(list) > 0 && list[0].Waiting+list[0].Active == 0
	})
	if len(r.results) > 0 {
		t.Errorf("it is answered: %+v", <-r.results)
	}
}

// TestTurnedAwayCostsNothing: a command that was turned away by a replica that
// is not well, and then met another one that could start nothing, has been
// given back once like any other: the failure is not the task's.
func TestTurnedAwayCostsNothing(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var ill sickness
	sick := sharedReplica(t, b, "ill", nil)
	sick.Unwell = ill.unwell
	workerRun(t, sick)
	cmd := analyze(1)
	cmd.Patience = time.Hour
	r.start(cmd)
	wait.Until(t, "it was turned away", func() bool { return ill.asked.Load() >= 3 })
	var began atomic.Int32
	workerRun(t, sharedReplica(t, b, "well", func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
		if began.Add(1) > 1 {
			return found()
		}
		elsewhere.NotHere(ctx, syscall.EAGAIN, false)
		return forge.Result{Output: &forge.Failure{Reason: forge.FailCrashed, Message: "resource temporarily unavailable"}}
	}))
	if got := r.result(); got.Failure() != nil || began.Load() != 2 {
		t.Errorf("after %d attempts: %+v", began.Load(), got)
	}
}

// TestHarmsEachReplica: a task that leaves no room for processes wherever it runs is
// given back once, whichever replicas there are, and the second failure is its own.
func TestHarmsEachReplica(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var began atomic.Int32
	for _, name := range []forge.ReplicaID{"one", "two"} {
		workerRun(t, sharedReplica(t, b, name, func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
			began.Add(1)
			elsewhere.NotHere(ctx, syscall.EAGAIN, false)
			return forge.Result{Output: &forge.Failure{Reason: forge.FailCrashed, Message: "it starts too many processes"}}
		}))
	}
	r.start(waiting(1))
	got := r.result()
	if f := got.Failure(); f == nil || f.Reason != forge.FailCrashed || began.Load() != 2 {
		t.Errorf("after %d attempts: %+v", began.Load(), f)
	}
}

// TestNoReplicaIsWell: where each replica is unwell a command is not begun, and
// answered after a while with the reason. It is issued again, waits with the
// replicas for longer, and is done within seconds as soon as one is well.
func TestNoReplicaIsWell(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var ill sickness
	w := sharedReplica(t, b, "ill", func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	w.Unwell = ill.unwell
	workerRun(t, w)
	r.start(waiting(1))
	got := r.result()
	if f := got.Failure(); f == nil || f.Reason != forge.FailReplica || !strings.Contains(f.Message, "no space left") {
		t.Errorf("got %+v", f)
	}
	cmd, asked := analyze(2), ill.asked.Load()
	cmd.Patience = 15 * time.Minute
	r.start(cmd)
	wait.Until(t, "it is turned away", func() bool { return ill.asked.Load() > asked+1 })
	ill.healed.Store(true)
	select {
	case got := <-r.results:
		if got.Failure() != nil || got.Attempt.Number != 2 {
			t.Errorf("got %+v", got)
		}
	case <-wait.Briefly(t, 5*time.Second).Done():
		t.Error("the replica is well again, and the command goes on waiting")
	}
}

// TestNoReplicaCan: what no replica can do for want of a program or a sandbox is
// answered with the reason that waits, and not with one that asks a person for
// each intent. Rules that do not know the reason are told the failure as it is.
func TestNoReplicaCan(t *testing.T) {
	t.Parallel()
	for _, reason := range []forge.FailureReason{forge.FailSandbox, forge.FailMissingCLI} {
		t.Run(string(reason), func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t)
			r := newRunner(t, b)
			var mended atomic.Bool
			for _, name := range []forge.ReplicaID{"one", "two"} {
				workerRun(t, sharedReplica(t, b, name, func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
					if mended.Load() {
						return found()
					}
					elsewhere.NotHere(ctx, errors.New("it is not here"), true)
					return forge.Result{Output: &forge.Failure{Reason: reason, Message: "it is not here"}}
				}))
			}
			r.start(waiting(1))
			got := r.result()
			if f := got.Failure(); f == nil || f.Reason != forge.FailReplica || f.Message != "it is not here" {
				t.Errorf("got %+v", f)
			}
			mended.Store(true)
			r.start(waiting(2))
			if got = r.result(); got.Failure() != nil {
				t.Errorf("once it is there: %+v", got.Failure())
			}
		})
	}
}

// TestUnansweredByOlderRules: a command of rules that do not know that replicas may
// be lacking is never answered so: it goes round until a replica can do it, as it
// did then. A runner that is rolled back to those rules could read no other answer.
func TestUnansweredByOlderRules(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var ill sickness
	w := sharedReplica(t, b, "ill", func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	w.Unwell = ill.unwell
	workerRun(t, w)
	r.start(analyze(1))
	wait.Until(t, "it goes round", func() bool { return ill.asked.Load() >= 2 })
	ill.healed.Store(true)
	if got := r.result(); got.Failure() != nil {
		t.Errorf("got %+v", got.Failure())
	}
}

// TestBegunIsTold: of a step that no replica could do it is told that one has
// begun, once what it lacks would have shown. Of any other it is not.
func TestBegunIsTold(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	workerRun(t, sharedReplica(t, b, "w1", h.do))
	cmd := analyze(1)
	cmd.Patience = 2 * elsewhere.Patience
	r.start(cmd)
	if got := r.result(); !got.IsStart() || got.Attempt != cmd.Attempt || got.Replica != "w1" {
		t.Errorf("got %+v", got)
	}
	close(h.released)
	if got := r.result(); got.IsStart() || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
	for patience, told := range map[time.Duration]bool{0: false, elsewhere.Patience: false, 15 * time.Minute: true} {
		if after := elsewhere.BeginsAfter(&forge.Command{Patience: patience}); (after > 0) != told || after > 15*time.Second {
			t.Errorf("with a patience of %v it is told after %v", patience, after)
		}
	}
}
