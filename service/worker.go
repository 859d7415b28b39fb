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
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/redact"
)

// What [context.Cause] of a cancelled attempt says.
var (
	// ErrNotWanted means that nobody waits for the result any more.
	ErrNotWanted = errors.New("the attempt is not wanted any more")
	// ErrDraining means that this process ends, and another takes the command.
	ErrDraining = errors.New("the service is draining")
)

// defaultRecheck is how often a running attempt makes sure that it is wanted.
const defaultRecheck = 10 * time.Second

// Handler does the attempts of one step.
type Handler struct {
	Step forge.Step
	// Agent says that an attempt calls an agent: it holds a permit while it runs.
	Agent bool
	// Lease says that an attempt holds a lease although it calls no agent: no other
	// replica begins it meanwhile, and a replica that was killed gets it back as soon as
	// it starts again.
	Lease bool
	// Regardless says that an attempt is done, and what it found reported, also when
	// nobody waits for it: what it looks for may be a fact all the same. Do then asks
	// by itself before it changes anything.
	Regardless bool
	// Do does one attempt and reports what it found, as facts: the step's payload
	// or a Failure, and what the agent used. Everything else of the result is
	// filled in. Do must return soon after ctx ended, with everything that it
	// started ended too. What it returns then is dropped if the attempt is not
	// wanted, and so is a Failure when draining: the command goes to another.
	Do func(ctx context.Context, cmd forge.Command, progress Progress) forge.Result
}

// Worker takes the commands of some steps, has them done, and reports one result
// for each. It decides nothing.
type Worker struct {
	Bus      *bus.Bus
	Replica  forge.ReplicaID
	Log      *slog.Logger
	Handlers []Handler
	// Parallel is how many attempts of each step run at the same time, at least 1.
	Parallel int
	// Outbox keeps results until they are journaled; nil: when this process is killed
	// with a result, the work is done again.
	Outbox *Outbox
	// Permits bounds the agents of all workers that share it; nil means that
	// Parallel is bound enough.
	Permits *Permits
	// Shared says that other replicas take the same commands. Then an attempt that
	// calls an agent, or asks for it, holds a lease, so that no two work on a task at the
	// same time.
	Shared bool
	// Grace is how long running attempts may go on when Run's context ends.
	Grace time.Duration
	// Recheck is how often a running attempt makes sure that it is wanted; 0 means
	// every 10 seconds.
	Recheck time.Duration
	// Secrets are taken out of everything that leaves the worker, beside what looks
	// like a secret; nil: none are known.
	Secrets *redact.Redactor
	// LogDir is absolute: transcripts are kept there too, in a file for each attempt;
	// empty: on the bus alone.
	LogDir string
	// OnControl, if set, is told what is not needed any more, such as checkouts.
	// It must not block.
	OnControl func(live.Control)
}

// Run works until ctx ends, then drains: it takes nothing new, gives running
// attempts their grace, cancels the rest so that other replicas get their
// commands, and returns when no handler runs.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	jobs, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	defer abort(nil)
	r := &workerRun{Worker: w, ctx: ctx, holder: w.holder(), attempts: map[string]*attempt{}}
	if err := w.Bus.Live.FollowControl(jobs, r.control); err != nil {
		return err
	}
	done := make(chan struct{})
	var graces, steps sync.WaitGroup
	defer w.Outbox.close()
	r.deliver(ctx, &graces)
	r.handBack(ctx)
	graces.Go(func() {
		if r.graceOver(done) {
			abort(ErrDraining)
		}
	})
	errs := make([]error, len(w.Handlers))
	for i, h := range w.Handlers {
		steps.Go(func() {
			cfg := work.Config{Step: h.Step, Replica: w.Replica, Parallel: w.Parallel, Drain: ctx.Done()}
			steps.Go(func() { r.adopt(jobs, h) })
			errs[i] = w.Bus.Commands.Consume(jobs, cfg, func(ctx context.Context, job *work.Job) error { return r.take(ctx, h, job) })
		})
	}
	steps.Wait()
	close(done)
	graces.Wait()
	return errors.Join(errs...)
}

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

// leased says whether attempts of a handler hold leases.
func (w *Worker) leased(h Handler) bool { return w.Shared && (h.Agent || h.Lease) }

func (w *Worker) recheck() time.Duration {
	if w.Recheck == 0 {
		return defaultRecheck
	}
	return w.Recheck
}

// run is one Run.
type workerRun struct {
	*Worker
	holder work.LeaseHolder
	ctx    context.Context //nolint:containedctx // ends when nothing new is to be started

	mu       sync.Mutex
	attempts map[string]*attempt // those that run, by their command's id
}

// graceOver waits until running attempts have had their grace. It is false if they
// ended before.
func (r *workerRun) graceOver(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	case <-r.ctx.Done():
	}
	t := time.NewTimer(r.Grace)
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-t.C:
		return true
	}
}

// control makes the attempts that somebody says are not wanted ask for themselves.
// It comes before the next recheck, and a wrong one changes nothing.
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

// add registers an attempt. It is false if the same one runs already: the server
// took this process for dead and sent its command again.
func (r *workerRun) add(a *attempt) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempts[a.cmd.ID()] != nil {
		return false
	}
	r.attempts[a.cmd.ID()] = a
	return true
}

func (r *workerRun) remove(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.attempts, a.cmd.ID())
}
