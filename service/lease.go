package service

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/work"
)

// leaseKey is the context key of an attempt's lease.
type leaseKey struct{}

// Held returns an error if another replica may have been given the attempt of ctx,
// because this process was stopped or cut off for too long. Handlers call it right
// before every effect that others see. It returns nil for attempts without a lease.
func Held(ctx context.Context) error {
	if l, ok := ctx.Value(leaseKey{}).(*work.Lease); ok {
		return l.Held()
	}
	return nil
}

// holder names this life of the replica.
func (w *Worker) holder() work.LeaseHolder {
	return work.LeaseHolder{Replica: w.Replica, Group: w.Group, Life: rand.Text()}
}

// handBack returns the commands that the previous process of this replica had taken,
// so that they are delivered at once. If it fails the server returns them later by
// itself.
func (r *workerRun) handBack(ctx context.Context) {
	var steps []forge.Step
	for _, h := range r.Handlers {
		if r.leased(h) {
			steps = append(steps, h.Step)
		}
	}
	if err := r.Bus.Leases.HandBack(ctx, r.holder, steps...); err != nil && ctx.Err() == nil {
		r.Log.WarnContext(ctx, "commands that a former life had taken come again later", "error", err)
	}
}

// lease waits until no other replica works on the task, and keeps the lease until
// release. The returned context ends when the lease is lost. For handlers without
// leases it returns ctx.
func (a *attempt) lease(ctx context.Context, h Handler, job *work.Job) (_ context.Context, release func(), err error) {
	if !a.run.leased(h) {
		return ctx, func() {}, nil
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-a.run.ctx.Done():
			stop()
		case <-waiting.Done():
		}
	}()
	l, err := a.run.Bus.Leases.Acquire(waiting, job, a.run.holder)
	if err != nil {
		return nil, nil, err
	}
	ctx, release = a.keep(ctx, l)
	return ctx, release, nil
}

// keep keeps a lease until release. The returned context ends when it is lost.
func (a *attempt) keep(ctx context.Context, l *work.Lease) (_ context.Context, release func()) {
	a.held = l
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, l))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := l.Keep(ctx, min(a.run.recheck(), work.LeaseRenewal)); err != nil {
			a.log.WarnContext(ctx, "end an attempt that another replica may have taken over", "error", err)
			cancel(err)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-kept
		l.Release(context.WithoutCancel(ctx))
	}
}

// takenAway reports whether the attempt lost its lease.
func takenAway(ctx context.Context, cause error) bool {
	return errors.Is(cause, work.ErrLeaseLost) || Held(ctx) != nil
}
