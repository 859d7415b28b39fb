// Package implementer is the implementer service: it has tasks implemented, puts
// their changes on the tip of the base branch, and merges them there.
package implementer

import (
	"context"
	"log/slog"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/repository"
	"github.com/pfl-forge/pfl-forge/service"
)

// Implementer does the steps implement, execute, rebase and merge.
type Implementer struct {
	repos *repository.Set
	bus   *bus.Bus
	log   *slog.Logger
	id    forge.ReplicaID

	mu    sync.Mutex
	kept  map[taskKey]bool // tasks with heads that this process kept; true: and merges
	tidy  sync.WaitGroup
	crash func(point string) // tests stop here as a crash would
	ready func()
}

// Config is what an implementer needs.
type Config struct {
	Repositories *repository.Set
	Bus          *bus.Bus
	Replica      forge.ReplicaID
	Log          *slog.Logger

	// Ready, if not nil, is called once what a former life left has been seen to.
	Ready func()
}

// New returns an implementer.
func New(cfg Config) *Implementer {
	if cfg.Ready == nil {
		cfg.Ready = func() {}
	}
	return &Implementer{
		repos: cfg.Repositories, bus: cfg.Bus, log: cfg.Log, id: cfg.Replica,
		kept: map[taskKey]bool{}, crash: func(string) {}, ready: cfg.Ready,
	}
}

// Handlers is what a worker has to do for it; see Run.
func (i *Implementer) Handlers() []service.Handler {
	return []service.Handler{
		{Step: forge.StepImplement, Agent: true, Do: i.implement},
		{Step: forge.StepExecute, Agent: true, Do: i.implement},
		{Step: forge.StepRebase, Lease: true, Do: i.rebase},
		{Step: forge.StepMerge, Lease: true, Regardless: true, Do: i.merge},
	}
}

// Run reports what a former life merged and did not tell, gives back what it need
// not keep, and has the worker, which was made with Handlers, work until ctx ends.
func (i *Implementer) Run(ctx context.Context, w *service.Worker) error {
	if err := i.repos.Prepare(ctx, i.reconcile); err != nil {
		return err
	}
	i.ready()
	defer i.tidy.Wait()
	defer i.serveCleaning(ctx, w)()
	w.OnControl = func(c live.Control) {
		if len(c.Released) > 0 {
			i.tidy.Go(func() { i.release(ctx, c) })
		}
	}
	return w.Run(ctx)
}
