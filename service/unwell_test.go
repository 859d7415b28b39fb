package service_test

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// TestUnwellReplicaTakesNothing: a replica whose disk is full leaves commands
// to another one, and takes them again when it is well.
func TestUnwellReplicaTakesNothing(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var full atomic.Bool
	full.Store(true)
	asked := make(chan struct{}, 100)
	began := make(chan string, 100)
	replica := func(name forge.ReplicaID) *service.Worker {
		w := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result {
			began <- string(name)
			return found()
		})
		w.Replica = name
		return w
	}
	ill := replica("ill")
	ill.Unwell = func(context.Context, bool) error {
		if full.Load() {
			asked <- struct{}{}
			return syscall.ENOSPC
		}
		return nil
	}
	workerRun(t, ill)
	r.start(analyze(1))
	wait.For(t, asked)
	if len(began) > 0 {
		t.Error("a replica that is not well began")
	}
	workerRun(t, replica("well"))
	if got := r.result(); got.Replica != "well" || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
}

// TestUnwellReplicaHandsBack: what a replica found out while its disk was full is no
// result, unless it cost money or moved the base branch; another delivery has it done.
// That which cost something says that it is the replica's, where its rules know that.
func TestUnwellReplicaHandsBack(t *testing.T) {
	t.Parallel()
	paid := forge.Result{Usage: forge.Usage{OutputTokens: 5}, Output: &forge.Failure{Reason: forge.FailCrashed, Message: "no space"}}
	for _, c := range []struct {
		name     string
		first    forge.Result
		patience time.Duration
		counts   forge.FailureReason // empty if it does not count
	}{
		{"failure", forge.Result{Output: &forge.Failure{Reason: forge.FailRepository, Message: "no space left on device"}}, elsewhere.Patience, ""},
		{"finding", found(), elsewhere.Patience, ""},
		{"cost", paid, elsewhere.Patience, forge.FailUnwell},
		{"cost, by rules that do not know it", paid, 0, forge.FailInterrupted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Start(t)
			r := newRunner(t, b)
			var calls atomic.Int32
			var full atomic.Bool
			w := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result {
				if calls.Add(1) == 1 {
					full.Store(true)
					return c.first
				}
				return forge.Result{Output: &forge.Analysis{NothingToDo: "on the second look"}}
			})
			w.Unwell = func(_ context.Context, anew bool) error {
				if full.Load() && anew {
					full.Store(false) // mended right after
					return errors.New("the disk is full")
				}
				return nil
			}
			workerRun(t, w)
			cmd := analyze(1)
			cmd.Patience = c.patience
			r.start(cmd)
			got := r.result()
			second := forge.As[*forge.Analysis](got.Output) != nil && forge.As[*forge.Analysis](got.Output).NothingToDo == "on the second look"
			if second == (c.counts != "") {
				t.Errorf("reported %+v", got)
			}
			if f := got.Failure(); c.counts != "" && (f == nil || f.Reason != c.counts) {
				t.Errorf("the replica's failure is the attempt's: %+v", got)
			}
			r.none()
		})
	}
}

// TestRoomAgain: a paid attempt for which there was no room is the replica's failure also when
// there is room again as soon as it has ended.
func TestRoomAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	workerRun(t, sharedReplica(t, b, "one", func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
		elsewhere.NotHere(ctx, errors.New("no space left on device"), true)
		return forge.Result{Usage: forge.Usage{OutputTokens: 5}, Output: &forge.Failure{Reason: forge.FailRepository, Message: "no space"}}
	}))
	cmd := analyze(1)
	cmd.Patience = elsewhere.Patience
	r.start(cmd)
	res := r.result()
	if f := res.Failure(); f == nil || f.Reason != forge.FailUnwell {
		t.Errorf("it is %+v", f)
	}
}

// TestLeftToAnotherReplica: an attempt that failed here for a reason of this
// replica is made by another one, and reported once, as what that one found.
func TestLeftToAnotherReplica(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var ill atomic.Int32
	workerRun(t, sharedReplica(t, b, "ill", func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
		ill.Add(1)
		elsewhere.NotHere(ctx, errors.New("codex is not in PATH"), true)
		return forge.Result{Output: &forge.Failure{Reason: forge.FailMissingCLI, Message: "codex is not in PATH"}}
	}))
	r.start(analyze(1))
	wait.Until(t, "it was tried", func() bool { return ill.Load() > 0 })
	workerRun(t, sharedReplica(t, b, "well", func(context.Context, forge.Command, service.Progress) forge.Result { return found() }))
	if got := r.result(); got.Replica != "well" || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
	r.start(analyze(2))
	if got := r.result(); got.Replica != "well" || got.Failure() != nil {
		t.Errorf("the next attempt: %+v", got)
	}
	r.none()
}
