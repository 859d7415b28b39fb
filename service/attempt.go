package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/service/begun"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
	"github.com/pfl-forge/pfl-forge/service/withheld"
)

const (
	// runningElsewhere is the delay until a command that this process is running is
	// delivered again.
	runningElsewhere = 15 * time.Second
	// longestHold bounds the delay until a command is delivered again that cannot begin here
	// yet.
	longestHold = 15 * time.Second
	// unwellPatience bounds asking whether this replica can do work: a disk
	// that does not answer is one that cannot.
	unwellPatience = 5 * time.Second
	// askAgain is the delay until a command is delivered again when the bus did not
	// answer.
	askAgain = time.Second
)

// attempt is one command that this process carries out.
type attempt struct {
	run *workerRun
	cmd forge.Command
	log *slog.Logger
	// trace is the id of the trace that it is part of; empty without one.
	trace string
	// recheck has capacity 1; an element makes watch ask at once.
	recheck chan struct{}
	// delivery counts how often the command was delivered, from 1.
	delivery int
	// causes is whether the attempt failed for a reason of this replica; nil before it began.
	causes *elsewhere.Causes
	// held is the lease on what the attempt is about; nil while there is none.
	held *work.Lease
}

// take carries out one command. nil means that the command is done with, an error
// that it is to be delivered again, as bus.Retry says.
func (r *workerRun) take(ctx context.Context, h Handler, job *work.Job) error {
	a := r.attempt(job.Command)
	loop := r.Alive.Begin("command of step " + string(h.Step))
	defer loop.End()
	if job.Attempt > 1 {
		r.Metrics.Redelivered(telemetry.KindCommand)
	}
	a.delivery = job.Attempt
	if !r.add(a) {
		return bus.Retry(runningElsewhere, errors.New("it runs already"))
	}
	defer r.remove(a)
	loop.Rest() // for a moment, where the command is left to another replica
	if begins, err := r.admit(ctx, h, a, job); !begins {
		return err
	}
	jobs := ctx // it rests on until no other replica is at it, and a permit is free
	// The lease is kept until the result is journaled, the permit only while an agent
	// may run.
	ctx, release, err := a.lease(jobs, h, job)
	if err != nil {
		return bus.Retry(askAgain, err)
	}
	defer release()
	turn, ok := a.alone()
	if !ok {
		return bus.Retry(0, ErrDraining)
	}
	defer turn()
	pass, ok := r.permit(h)
	if !ok {
		return bus.Retry(0, ErrDraining)
	}
	defer pass()
	select {
	case <-r.ctx.Done():
		return bus.Retry(0, ErrDraining)
	default:
	}
	loop.Busy()
	wanted, err := job.Wanted(ctx)
	if err != nil {
		return bus.Retry(askAgain, err)
	}
	if !wanted && !h.Regardless {
		a.log.InfoContext(ctx, "drop a command that is not wanted", "delivery", job.Attempt)
		a.keepTranscript() // of a former life that was killed
		return nil
	}
	loop.Rest() // for a runner, then for the handler
	if f := begun.Failure(&a.cmd, a.killed()); f != nil {
		return a.tell(ctx, f)
	}
	if err := a.claim(ctx); err != nil {
		return err
	}
	res, cause := a.measured(ctx, h, job)
	loop.Busy()
	if counts, err := a.counts(ctx, h, job, &res, cause, wanted); !counts {
		return err
	}
	pass()
	job.Free()
	loop.Rest() // until a runner has journaled the result
	return a.report(logging.Trace(jobs, a.trace), res)
}

// counts reports whether the result of an attempt is to be reported. Otherwise the error
// says why the command is to be delivered again; nil: its result is not wanted any more.
func (a *attempt) counts(ctx context.Context, h Handler, job *work.Job, res *forge.Result, cause error, wanted bool) (bool, error) {
	wanted = wanted && !errors.Is(cause, ErrNotWanted)
	if wanted {
		a.run.failed.Record(&a.cmd, res.Failure(), time.Now())
	}
	switch {
	case takenAway(ctx, cause):
		a.run.Metrics.LeaseLost(h.Step)
		return false, work.ErrLeaseLost
	case res.Usage != (forge.Usage{}): // what it cost is a fact, and is counted before anybody goes on
		a.excuse(ctx, res, cause)
	case !wanted && (!h.Regardless || res.Failure() != nil):
		a.log.InfoContext(ctx, "drop a result that is not wanted")
		return false, nil
	case errors.Is(cause, ErrDraining) && res.Failure() != nil:
		a.log.InfoContext(ctx, "hand a command back")
		return false, bus.Retry(0, ErrDraining)
	case !isMerged(res):
		err := a.run.unwell(ctx, true)
		if err == nil {
			err = a.giveBack(ctx, job, res.Failure())
		}
		if err != nil {
			a.log.WarnContext(ctx, "hand a command back", "error", err)
			return false, bus.Retry(elsewhere.Pause(&a.cmd, a.delivery), err)
		}
	}
	return true, nil
}

// excuse has a failure say that it is this replica's, not the attempt's, if so.
func (a *attempt) excuse(ctx context.Context, res *forge.Result, cause error) {
	if res.Failure() == nil {
		return
	}
	if errors.Is(cause, ErrDraining) {
		res.Output = &forge.Failure{Reason: forge.FailInterrupted, Message: "stopped; the work so far is kept"}
		return
	}
	// What filled a disk may be gone with the attempt, and the replica be well by now.
	if err := cmp.Or(a.run.unwell(ctx, true), a.causes.Why()); err != nil {
		res.Output = a.run.failed.Unwell(&a.cmd, err, time.Now())
	}
}

// isMerged reports whether a result says that the base branch has moved, which
// is a fact whatever the replica is like.
func isMerged(res *forge.Result) bool {
	in := forge.As[*forge.MergeResult](res.Output)
	return in != nil && in.Outcome == forge.MergeDone
}

// measured is do with its metrics and its span.
func (a *attempt) measured(ctx context.Context, h Handler, job *work.Job) (forge.Result, error) {
	a.run.Metrics.AttemptBegan(&job.Command, time.Since(job.IssuedAt))
	ctx, finish := a.begin(ctx)
	end := a.noteBegun(h)
	res, cause := a.do(ctx, h)
	end()
	finish(&res)
	a.run.Metrics.AttemptEnded(&res, res.Failure() != nil && cause != nil)
	return res, cause
}

// begin begins the span of the attempt, if spans are exported, and has the log name its
// trace. Without an answer of the journal there is none.
func (a *attempt) begin(ctx context.Context) (_ context.Context, finish func(*forge.Result)) {
	metrics := a.run.Metrics
	if !metrics.Tracing() {
		return ctx, func(*forge.Result) {}
	}
	summary, err := a.run.Bus.Journal.Summary(ctx, a.cmd.To)
	if err != nil {
		a.log.WarnContext(ctx, "the run of an attempt is not known; it has no trace", "error", err)
		return ctx, func(*forge.Result) {}
	}
	ctx, finish = metrics.Attempt(ctx, telemetry.Run{Key: a.cmd.To, Number: summary.Run}, &a.cmd)
	a.trace = telemetry.TraceIDOf(ctx)
	a.log = a.log.With("trace_id", a.trace)
	return logging.Trace(ctx, a.trace), finish
}

// admit reports whether an attempt begins. If it cannot begin here yet, the
// error says when its command comes again; nil: it was answered.
func (r *workerRun) admit(ctx context.Context, h Handler, a *attempt, job *work.Job) (begins bool, err error) {
	if r.Hold != nil {
		if err := r.Hold(&job.Command); err != nil {
			return false, bus.Retry(min(askAgain<<min(job.Attempt, 10), longestHold), err)
		}
	}
	if err := r.unwell(ctx, false); err != nil {
		return false, a.turnAway(ctx, h, job, err)
	}
	if err := a.leave(a.avoided()); err != nil {
		return false, err
	}
	return true, nil
}

// attempt returns the attempt for a command, not yet begun.
func (r *workerRun) attempt(cmd forge.Command) *attempt {
	return &attempt{
		run: r, cmd: cmd, recheck: make(chan struct{}, 1),
		log: r.Log.With("intent", cmd.To.String(), "task", string(cmd.Attempt.Task), "attempt", cmd.Attempt.String()),
	}
}

// permit waits for a permit if the handler needs one. ok is false if the service
// drains before there is one. pass gives the permit back, and may be called twice.
func (r *workerRun) permit(h Handler) (pass func(), ok bool) {
	if !h.Agent || r.Permits == nil {
		return func() {}, true
	}
	return sync.OnceFunc(r.Permits.release), r.Permits.acquire(r.ctx.Done())
}

// claim reports that this replica has begun a command that was addressed to it alone.
// Otherwise the runner gives the command to other replicas after a while.
func (a *attempt) claim(ctx context.Context) error {
	if a.cmd.Replica == "" {
		return nil
	}
	return a.begun(ctx)
}

// begun reports that the attempt has begun.
func (a *attempt) begun(ctx context.Context) error {
	return a.run.Bus.Results.Publish(ctx, forge.Result{
		To: a.cmd.To, Attempt: a.cmd.Attempt, Replica: a.run.Replica, StartedAt: time.Now().UTC(), Output: &forge.Started{},
	})
}

// do runs the handler and completes its result. The error is the cause for which the
// attempt was cancelled: ErrNotWanted, ErrDraining or work.ErrLeaseLost; nil if it
// ran to its end.
func (a *attempt) do(ctx context.Context, h Handler) (forge.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { a.watch(watching, cancel) })
	told := a.newReporter()
	defer told.end() // before the result is reported: who waits for that finds the transcript complete
	watch.Go(func() { elsewhere.ReportBegun(watching, &a.cmd, a.begun) })
	began := time.Now()
	told.report(forge.Progress{Kind: forge.ProgressStarted})
	a.log.InfoContext(ctx, "start")
	if a.run.Shared {
		ctx, a.causes = elsewhere.Listen(ctx, func(ctx context.Context) error { return a.run.unwell(ctx, true) })
	}

	res := withheld.Result(a.run.redactor(), a.call(ctx, h, told.report))

	stop()
	watch.Wait()
	cause := context.Cause(ctx)
	if f := res.Failure(); f != nil && f.Reason == forge.FailCrashed && (errors.Is(cause, ErrNotWanted) || errors.Is(cause, ErrDraining)) {
		f.Reason, f.Message = forge.FailKilled, "stopped: "+cause.Error()
	}
	res.Attempt = a.cmd.Attempt
	if res.Failure() == nil && !res.Answers() {
		res = forge.Result{Output: &forge.Failure{Reason: forge.FailCrashed, Message: "the worker reported nothing: this is a bug in it"}}
	}
	res.To, res.Attempt, res.Replica = a.cmd.To, a.cmd.Attempt, a.run.Replica
	res.StartedAt, res.Duration = began.UTC(), time.Since(began)
	told.report(forge.Progress{Kind: forge.ProgressEnded, Agent: res.Agent, Usage: res.Usage, Text: outcome(&res)})
	if f := res.Failure(); f != nil && cause == nil {
		a.log.WarnContext(ctx, "end", "duration", res.Duration, "outcome", f.Reason, "error", f.Message)
	} else {
		a.log.InfoContext(ctx, "end", "duration", res.Duration, "outcome", outcome(&res))
	}
	return res, cause
}

// call runs the handler, and turns a panic into a failure: one bad command must not
// end the other attempts of the process.
func (a *attempt) call(ctx context.Context, h Handler, progress Progress) (res forge.Result) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		a.log.ErrorContext(ctx, "a handler panicked", "panic", a.run.redactor().Text(fmt.Sprint(v)), "stack", string(debug.Stack()))
		res = forge.Result{Output: &forge.Failure{
			Reason:  forge.FailCrashed,
			Message: fmt.Sprintf("the worker panicked (%v): its log has the stack", v),
		}}
	}()
	return h.Do(ctx, a.cmd, progress)
}

// watch cancels the attempt when it is not wanted any more. It asks at intervals, and
// at once after a control message. If the bus does not answer, the attempt goes on.
func (a *attempt) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	t := time.NewTicker(a.run.recheck())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.recheck:
		case <-t.C:
		}
		wanted, err := a.run.Bus.Journal.Wanted(ctx, a.cmd.To, a.cmd.Attempt)
		if err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "cannot ask whether the attempt is wanted; continuing", "error", err)
		}
		if err == nil && !wanted {
			cancel(ErrNotWanted)
			return
		}
	}
}

// recheckNow makes watch ask whether the attempt is wanted.
func (a *attempt) recheckNow() {
	select {
	case a.recheck <- struct{}{}:
	default:
	}
}

// concerns reports whether a control message is about this attempt. A message of a
// project concerns the attempts of all its intents.
func (a *attempt) concerns(c live.Control) bool {
	if c.To.Project != a.cmd.To.Project || !c.To.IsProject() && c.To.Intent != a.cmd.To.Intent {
		return false
	}
	return c.Ended || slices.Contains(c.Cancels, a.cmd.Attempt)
}
