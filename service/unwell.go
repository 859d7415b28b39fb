package service

import (
	"context"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
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

// turnAway leaves a command to another replica, after a pause in which it takes a place here, so that a queue of them goes round slowly.
// One that none has taken for long is answered with forge.FailReplica: its intent waits, and says why.
func (a *attempt) turnAway(ctx context.Context, job *work.Job, why error) error {
	pause := time.NewTimer(askAgain)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-a.run.ctx.Done():
		return bus.Retry(0, ErrDraining)
	}
	if !a.run.Shared || !elsewhere.Answers(&a.cmd, job.Attempt, time.Since(job.IssuedAt)) {
		return bus.Retry(0, why)
	}
	a.log.WarnContext(ctx, "no replica takes a command", "error", why)
	res := withoutSecrets(a.run.redactor(), forge.Result{
		To: a.cmd.To, Attempt: a.cmd.Attempt, Replica: a.run.Replica, StartedAt: time.Now().UTC(),
		Output: &forge.Failure{Reason: forge.FailReplica, Message: why.Error()},
	})
	return a.report(ctx, res)
}

// leave returns the error with which a command is left to another replica for a while, to begin with or because its attempt failed for a
// reason of this one; nil: it is not.
func (a *attempt) leave(why error) error {
	if why == nil || !a.run.Shared {
		return nil
	}
	return bus.Retry(elsewhere.Pause(a.delivery), why)
}

// avoided returns why a command that could begin here had better begin elsewhere; nil: it begins.
func (a *attempt) avoided() error {
	if err := a.run.failed.Avoid(&a.cmd, a.delivery, time.Now()); err != nil || a.run.Elsewhere == nil || elsewhere.Begins(a.delivery) {
		return err
	}
	return a.run.Elsewhere(&a.cmd)
}
