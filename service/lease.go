package service

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/work"
)

type leaseKey struct{}

// Held returns an error if the attempt that ctx is of may have been given to another
// replica, because this one was stopped or cut off for long. Work asks before every
// effect that others see.
func Held(ctx context.Context) error {
	if l, ok := ctx.Value(leaseKey{}).(*work.Lease); ok {
		return l.Held()
	}
	return nil
}

// holder names this life of the replica.
func (w *Worker) holder() work.LeaseHolder {
	return work.LeaseHolder{Replica: w.Replica, Life: rand.Text()}
}

// handBack gives up what a former life had taken. It can wait: the server finds out.
func (r *workerRun) handBack(ctx context.Context) {
	var steps []forge.Step
	for _, h := range r.Handlers {
		if r.leased(h) {
			steps = append(steps, h.Step)
		}
	}
	if err := r.Bus.Leases.HandBack(ctx, r.holder, steps...); err != nil && ctx.Err() == nil {
		r.Log.Warn("commands that a former life had taken come again later", "error", err)
	}
}

// lease waits until no other replica works on the task, and keeps it so until
// release. The context that it returns ends when another one may have begun.
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
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, leaseKey{}, l))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := l.Keep(ctx, min(a.run.recheck(), work.LeaseRenewal)); err != nil {
			a.log.Warn("end an attempt that another replica may have taken over", "error", err)
			cancel(err)
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-kept
		l.Release(context.WithoutCancel(ctx))
	}, nil
}

// takenAway reports whether an attempt ended because its lease was lost.
func takenAway(ctx context.Context, cause error) bool {
	return errors.Is(cause, work.ErrLeaseLost) || Held(ctx) != nil
}
