package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

const (
	// reportGrace is how long a result may take to be journaled when draining is
	// over.
	reportGrace = 3 * time.Second
	// restartTime is how long a command is withheld from other replicas while its
	// result is in the outbox of a process that ended: that process publishes it when
	// it starts again.
	restartTime = time.Minute
)

// report publishes the result and waits until it is journaled, however long that
// takes: the work is done and must not be done again. With an outbox it waits only
// until the service drains.
func (a *attempt) report(ctx context.Context, res forge.Result) error {
	kept := a.run.Outbox.put(ctx, res)
	if kept != nil {
		ctx = a.run.ctx // it need not wait for a runner as long as the drain may take
	}
	ctx, cancel := outlive(ctx, reportGrace)
	defer cancel()
	err := a.publish(ctx, res)
	if ctx.Err() == nil || err == nil {
		kept.remove()
		return err
	}
	if kept == nil {
		return bus.Retry(0, err)
	}
	a.log.WarnContext(ctx, "the result stays in the outbox until this replica starts again", "error", err)
	return bus.Retry(restartTime, err)
}

// publish publishes the result, or, if the bus refuses it, a failure in its place.
func (a *attempt) publish(ctx context.Context, res forge.Result) error {
	err := a.run.Bus.Results.Publish(ctx, res)
	if err == nil || ctx.Err() != nil {
		return err
	}
	a.log.WarnContext(ctx, "the result cannot be published; a failure takes its place", "error", err)
	err = a.run.Bus.Results.Publish(ctx, unpublishable(res, err))
	if err == nil || ctx.Err() != nil {
		return err
	}
	return bus.Terminate(fmt.Sprintf("its result cannot be published: %v", err))
}

// unpublishable returns the failure that takes the place of a result that the bus
// refuses.
func unpublishable(res forge.Result, err error) forge.Result {
	reason := forge.FailInvalidOutput
	if _, ok := errors.AsType[*bus.TooLargeError](err); ok {
		reason = forge.FailOutputLimit
	}
	return forge.Result{
		To: res.To, Attempt: res.Attempt, Replica: res.Replica, StartedAt: res.StartedAt, Duration: res.Duration,
		Usage:  res.Usage,
		Output: &forge.Failure{Reason: reason, Message: fmt.Sprintf("the result cannot be published: %.500v", err)},
	}
}

// deliver publishes the results that a previous process left in the outbox, until ctx
// ends. A command for the same attempt that arrives meanwhile finds it running.
func (r *workerRun) deliver(ctx context.Context, wait *sync.WaitGroup) {
	for _, l := range r.Outbox.leftovers() {
		a := r.attempt(forge.Command{To: l.result.To, Attempt: l.result.Attempt})
		a.log.InfoContext(ctx, "publish a result that a former process left")
		added := r.add(a)
		wait.Go(func() {
			if added {
				defer r.remove(a)
			}
			ctx := logging.Attempt(ctx, l.result.To, l.result.Attempt)
			err := r.Bus.Results.Republish(ctx, l.result)
			if ctx.Err() != nil && err != nil {
				return // the next start goes on
			}
			if err != nil {
				a.log.WarnContext(ctx, "a result that a former process left cannot be published; the work is done again", "error", err)
			}
			l.remove(r.Log)
		})
	}
}

// outlive returns a context that ends d after its parent.
func outlive(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}

// outcome returns the reason of a failure, or transcript.OutcomeOK.
func outcome(r *forge.Result) string {
	if r.Failure() != nil {
		return string(r.Failure().Reason)
	}
	return transcript.OutcomeOK
}
