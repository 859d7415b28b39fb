package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
	"github.com/pfl-forge/pfl-forge/service/withheld"
)

// unwell returns why this replica cannot do any work now; nil if it can.
func (r *workerRun) unwell(ctx context.Context, anew bool) error {
	if r.Unwell == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, unwellPatience)
	defer cancel()
	if err := r.Unwell(ctx, anew); err != nil {
		return fmt.Errorf("this replica can do no work now: %w", err)
	}
	return nil
}

// turnAway leaves a command to another replica, after a pause in which it takes a
// place here, so that a queue of them goes round slowly. One that none has taken
// for long is answered with forge.FailReplica: its intent waits, and says why.
func (a *attempt) turnAway(ctx context.Context, h Handler, job *work.Job, why error) error {
	pause := time.NewTimer(elsewhere.Hold(&a.cmd))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-a.run.ctx.Done():
		return bus.Retry(0, ErrDraining)
	}
	if !a.run.Shared || !elsewhere.Answers(&a.cmd, a.round(ctx, job)) {
		return bus.Retry(0, why)
	}
	return a.answer(ctx, h, job, why)
}

// answer reports that no replica takes a command, unless one is at it, or may take
// it once it has done something else, or its result is not wanted any more.
func (a *attempt) answer(ctx context.Context, h Handler, job *work.Job, why error) error {
	if a.run.leased(h) {
		l, err := a.run.Bus.Leases.TryAcquire(ctx, job, a.run.holder)
		if errors.Is(err, work.ErrLeaseTaken) {
			return bus.Retry(runningElsewhere, err)
		}
		if err != nil {
			return bus.Retry(askAgain, err)
		}
		var release func()
		ctx, release = a.keep(ctx, l)
		defer release()
	}
	wanted, err := job.Wanted(ctx)
	if err != nil {
		return bus.Retry(askAgain, err)
	}
	if !wanted {
		a.log.InfoContext(ctx, "drop a command that is not wanted", "delivery", job.Attempt)
		a.keepTranscript()
		return nil
	}
	if a.held != nil && !elsewhere.Answers(&a.cmd, a.round(ctx, job)) {
		a.held.Unable()
		return bus.Retry(0, errors.New("another replica is at work on something else, and may take it then"))
	}
	a.log.WarnContext(ctx, "no replica takes a command", "error", why)
	return a.tell(ctx, &forge.Failure{Reason: forge.FailReplica, Message: why.Error()})
}

// tell reports why an attempt is not begun.
func (a *attempt) tell(ctx context.Context, f *forge.Failure) error {
	telling, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.run.ctx, stop)()
	err := a.publish(telling, withheld.Result(a.run.redactor(), forge.Result{ // and not kept: it may be the disk that is at fault
		To: a.cmd.To, Attempt: a.cmd.Attempt, Replica: a.run.Replica, StartedAt: time.Now().UTC(), Output: f,
	}))
	if err != nil && telling.Err() != nil {
		return bus.Retry(0, err)
	}
	return err
}

// round returns how the command has gone round. Without a lease, each delivery before counts as
// one at which it was given back. Whether others may still take it is asked only where it would
// be answered otherwise; no answer is taken for yes.
func (a *attempt) round(ctx context.Context, job *work.Job) elsewhere.Round {
	r := elsewhere.Round{Delivery: a.delivery, Waited: time.Since(job.IssuedAt), GivenBack: a.delivery > 1}
	if a.held == nil {
		return r
	}
	r.GivenBack, r.Busy = a.held.GivenBack(), a.held.Busy()
	if a.cmd.Replica != "" || !elsewhere.Answers(&a.cmd, r) {
		return r
	}
	if replica, err := a.held.Unasked(ctx); replica != "" || err != nil {
		a.log.DebugContext(ctx, "a replica that is at work may take a command once it is free", "replica", string(replica), "error", err)
		r.Busy = a.delivery
		a.held.WasBusy(r.Busy)
	}
	return r
}

// giveBack returns the error with which an attempt that failed for a reason of
// this replica goes to another one; nil: its failure counts.
func (a *attempt) giveBack(ctx context.Context, job *work.Job, f *forge.Failure) error {
	err := a.causes.Leave(&a.cmd, a.round(ctx, job), f)
	switch {
	case err == nil || a.held == nil:
	case a.causes.Once():
		a.held.GiveBack()
	default:
		a.held.Unable()
	}
	return err
}

// leave returns the error with which a command is left to another replica for a
// while, to begin with; nil: it is not.
func (a *attempt) leave(why error) error {
	if why == nil || !a.run.Shared {
		return nil
	}
	return bus.Retry(elsewhere.Pause(&a.cmd, a.delivery), why)
}

// avoided returns why a command that could begin here had better begin elsewhere; nil: it begins.
func (a *attempt) avoided() error {
	if err := a.run.failed.Avoid(&a.cmd, a.delivery, time.Now()); err != nil || a.run.Elsewhere == nil || elsewhere.Begins(a.delivery) {
		return err
	}
	return a.run.Elsewhere(&a.cmd)
}
