package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
)

// report stores the result, however long the server is away: the work is done and
// must not be done again. A result that cannot be stored becomes a failure.
func (a *attempt) report(ctx context.Context, res forge.Result) error {
	ctx, cancel := outlive(ctx, lastWords)
	defer cancel()
	err := a.run.Bus.PublishResult(ctx, res)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return bus.Retry(0, err)
	}
	a.log.Error("the result cannot be stored", "err", err)
	reason := forge.FailInvalidOutput
	if _, ok := errors.AsType[*bus.TooLargeError](err); ok {
		reason = forge.FailOutputLimit
	}
	instead := forge.Result{
		To: res.To, Attempt: res.Attempt, Replica: res.Replica, StartedAt: res.StartedAt, Duration: res.Duration,
		Usage:   res.Usage,
		Failure: &forge.Failure{Reason: reason, Message: fmt.Sprintf("the result cannot be stored: %.500v", err)},
	}
	if err := a.run.Bus.PublishResult(ctx, instead); err != nil {
		return bus.Terminate(fmt.Sprintf("its result cannot be stored: %v", err))
	}
	return nil
}

// outlive returns a context that ends some time after its parent.
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

func outcome(r *forge.Result) string {
	if r.Failure != nil {
		return string(r.Failure.Reason)
	}
	return "ok"
}
