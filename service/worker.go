package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// What [context.Cause] of a cancelled attempt says.
var (
	// ErrNotWanted is the cause of an attempt's end when its result is not needed any
	// more.
	ErrNotWanted = errors.New("the attempt is not wanted any more")
	// ErrDraining is the cause of an attempt's end when this process ends; another
	// replica gets the command.
	ErrDraining = errors.New("the service is draining")
)

// defaultRecheck is the interval in which a running attempt asks whether it is
// wanted.
const defaultRecheck = 10 * time.Second

// Handler carries out the attempts of one step.
type Handler struct {
	// Step selects the commands.
	Step forge.Step
	// Agent says that an attempt calls an agent, and so holds a permit while it runs,
	// and a lease where replicas share commands.
	Agent bool
	// Lease says that an attempt holds a lease although it calls no agent: no other
	// replica begins it meanwhile, and a replica that was killed gets it back as soon
	// as it starts again.
	Lease bool
	// Regardless says that an attempt is carried out and its findings are reported
	// even if they are not wanted: they may be facts, such as a merge that happened.
	// Do then asks by itself before it changes anything.
	Regardless bool
	// Do carries out one attempt and returns its findings: the step's payload or a
	// Failure, and the agent's usage. All other fields of the result are filled in by
	// the worker. Do must return soon after ctx ended, with everything that it
	// started ended too. What it returns then is dropped if the attempt is not
	// wanted, and so is a Failure while the service drains: the command goes to
	// another replica.
	Do func(ctx context.Context, cmd forge.Command, progress Progress) forge.Result
}

// Worker takes the commands of its handlers' steps, has them carried out, and reports
// one result for each. It decides nothing.
type Worker struct {
	// Bus is where commands come from and results go.
	Bus *bus.Bus
	// Replica names this worker among all that have the same steps.
	Replica forge.ReplicaID
	// Group is that of the replicas that share its commands; empty: those without one.
	Group subjects.Group
	// Log receives the worker's own events, not those of agents.
	Log *slog.Logger
	// Handlers has at most one for each step.
	Handlers []Handler
	// Parallel is the number of attempts of each step that run at the same time, at
	// least 1.
	Parallel int
	// Outbox keeps results until they are journaled; nil: if this process is killed
	// with a result, the work is done again.
	Outbox *Outbox
	// Permits bounds the agents of all workers that share it; nil: only Parallel
	// does.
	Permits *Permits
	// Shared says that other replicas take the same commands. Attempts that call an
	// agent, or whose handler asks for it, then hold leases, so that no two replicas
	// work on a task at the same time.
	Shared bool
	// Grace is how long running attempts may go on when Run's context ends.
	Grace time.Duration
	// Hurry ends the grace early; nil: nothing does.
	Hurry <-chan struct{}
	// Recheck is the interval in which a running attempt asks whether it is wanted;
	// 0: every 10 seconds.
	Recheck time.Duration
	// Secrets are redacted from everything that leaves the worker, beside texts with
	// the form of a secret; nil: only those are.
	Secrets *redact.Redactor
	// Metrics may be nil: then nothing is measured.
	Metrics *telemetry.Recorder
	// Alive watches the worker, except for its handlers; nil: nothing does.
	Alive *alive.Watch
	// LogDir is an absolute path where transcripts are kept too, one file for each
	// attempt; empty: they are on the bus alone.
	LogDir string
	// Hold, if set, returns why a command cannot begin here yet; nil: it can. The command
	// is delivered again after a while, to any replica that may take it.
	Hold func(*forge.Command) error
	// Unwell, if set, returns why this replica cannot do any work now, such as a full disk; nil:
	// it can. With anew the answer is not one of a moment ago. Commands are then left to other
	// replicas, and so is one whose attempt cost no money and ended meanwhile, whatever it found.
	Unwell func(ctx context.Context, anew bool) error
	// Elsewhere, if set, returns why another replica had better take a command; nil: this
	// one may. A command that no other takes for a while is begun here all the same.
	Elsewhere func(*forge.Command) error
	// OnControl, if set, receives control messages, for example to give checkouts
	// back. It must not block.
	OnControl func(live.Control)
}

// Run works until ctx ends, then drains: it takes nothing new, gives running attempts
// their Grace, cancels the rest so that other replicas get their commands, and
// returns when no handler runs.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	jobs, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	r := &workerRun{Worker: w, ctx: ctx, holder: w.holder(), attempts: map[string]*attempt{}, suspects: NewPermits(1)}
	if err := w.Bus.Live.FollowControl(jobs, r.control); err != nil {
		return err
	}
	done := make(chan struct{})
	var graces, steps sync.WaitGroup
	defer w.Outbox.close()
	r.deliver(ctx, &graces)
	r.noteKilled(ctx, &graces)
	r.handBack(ctx)
	graces.Go(func() {
		if r.graceOver(done) {
			abort(ErrDraining)
		}
	})
	errs := make([]error, len(w.Handlers))
	for i, h := range w.Handlers {
		steps.Go(func() {
			cfg := work.Config{Step: h.Step, Replica: w.Replica, Group: w.Group, Parallel: w.Parallel, Drain: ctx.Done()}
			steps.Go(func() { r.adopt(jobs, h) })
			errs[i] = w.Bus.Commands.Consume(jobs, cfg, func(ctx context.Context, job *work.Job) error { return r.take(ctx, h, job) })
		})
	}
	steps.Wait()
	close(done)
	graces.Wait()
	return errors.Join(errs...)
}

// check returns an error if the worker is not set up correctly.
func (w *Worker) check() error {
	switch {
	case w.Bus == nil, w.Log == nil, len(w.Handlers) == 0:
		return errors.New("worker: bus, log or handlers are missing")
	case w.Parallel < 1:
		return errors.New("worker: parallel must be at least 1")
	case w.Grace < 0, w.Recheck < 0:
		return errors.New("worker: durations must not be negative")
	}
	if _, err := forge.ParseReplicaID(string(w.Replica)); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	for _, h := range w.Handlers {
		if _, err := forge.ParseStep(string(h.Step)); err != nil {
			return fmt.Errorf("worker: %w", err)
		}
	}
	return nil
}

// leased reports whether attempts of a handler hold leases.
func (w *Worker) leased(h Handler) bool { return w.Shared && (h.Agent || h.Lease) }

// recheck returns Recheck or its default.
func (w *Worker) recheck() time.Duration {
	if w.Recheck == 0 {
		return defaultRecheck
	}
	return w.Recheck
}

// workerRun is the state of one call of Run.
type workerRun struct {
	*Worker
	// holder identifies this process as the owner of leases.
	holder work.LeaseHolder
	ctx    context.Context //nolint:containedctx // ends when nothing new is to be started
	// failed has where attempts of late failed here.
	failed elsewhere.Memory

	mu sync.Mutex
	// attempts are those that run, by the id of their command.
	attempts map[string]*attempt
	// suspects has one place, for an attempt that was killed as often as may be.
	suspects *Permits
}

// graceOver waits until the running attempts have had their grace, and returns true,
// or until done is closed, and returns false.
func (r *workerRun) graceOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	case <-r.ctx.Done():
	}
	r.Outbox.running().Excuse()
	t := time.NewTimer(r.Grace)
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-r.Hurry:
		return true
	case <-t.C:
		return true
	}
}

// control makes the attempts that a control message names ask at once whether they
// are wanted. The message itself decides nothing, so a wrong one changes nothing.
func (r *workerRun) control(c live.Control) {
	r.mu.Lock()
	for _, a := range r.attempts {
		if a.concerns(c) {
			a.recheckNow()
		}
	}
	r.mu.Unlock()
	if r.OnControl != nil {
		r.OnControl(c)
	}
}

// add registers an attempt. It returns false if the same one runs already, because
// the server took this process for dead and sent its command again.
func (r *workerRun) add(a *attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts[a.cmd.ID()] != nil {
		return false
	}
	r.attempts[a.cmd.ID()] = a
	return true
}

// remove ends the registration of an attempt.
func (r *workerRun) remove(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a.cmd.ID())
}
