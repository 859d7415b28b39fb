package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// A replica is stopped, and comes back when its next life has taken the attempt
// over: it ends what it does, reports nothing, and has no more effects.
func TestAttemptThatWasTakenOver(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	old := newBlocked()
	cut, held := make(chan error, 1), make(chan error, 1)
	w := worker(t, b, func(ctx context.Context, c forge.Command, p service.Progress) forge.Result {
		res := old.do(ctx, c, p)
		cut <- context.Cause(ctx)
		held <- service.Held(ctx)
		return res
	})
	w.Handlers[0].Agent, w.Shared, w.Recheck = true, true, 20*time.Millisecond
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, old.began)

	again := leaseOf(t, b, w.Replica)
	if err := wait.For(t, cut); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("it ends because of %v", err)
	}
	if err := wait.For(t, held); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("it thinks that it goes on: %v", err)
	}
	again.Release(t.Context())
	r.start(analyze(99))
	if got := r.result(); got.Attempt != analyze(99).Attempt {
		t.Errorf("it reports %+v", got)
	}
}

// leaseOf is the lease on the analysis, as the next life of a replica takes it.
func leaseOf(t *testing.T, b *bus.Bus, replica forge.ReplicaID) *work.Lease {
	t.Helper()
	l, err := b.Leases.Acquire(wait.Context(t), &work.Job{Command: analyze(1)}, work.LeaseHolder{Replica: replica, Life: "next"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What calls no agent comes back at once as well, when its replica was killed and starts
// again: the server would give it to somebody only when it counts as lost.
func TestKilledWithALease(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	first := newBlocked()
	killed := worker(t, b, first.do)
	killed.Handlers[0].Lease, killed.Shared, killed.Parallel, killed.Recheck = true, true, 1, 20*time.Millisecond
	workerRun(t, killed)
	r.start(analyze(1))
	wait.For(t, first.began)
	second := newBlocked()
	next := worker(t, b, second.do)
	next.Handlers[0].Lease, next.Shared = true, true
	workerRun(t, next) // the former life tells the server nothing, as after a kill
	wait.For(t, second.began)
	if err := wait.For(t, first.causes); !errors.Is(err, work.ErrLeaseLost) {
		t.Errorf("it ends because of %v", err)
	}
	close(second.released)
	if got := r.result(); got.Failure() != nil {
		t.Errorf("the next life reports %+v", got.Failure())
	}
}
