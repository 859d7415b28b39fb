// Package implementer is the implementer service: it has changes made, puts them on
// the tip of the base branch, and merges them there.
//
// [Implementer] has a handler for each of five steps. implement and execute (an
// iteration of a goal) have an agent work in a checkout and collect its commits; see
// begin.go for where the checkout comes from, implement.go for the work, save.go and
// checkpoint.go for how an attempt survives the end of its process or moves to
// another replica. rebase (rebase.go) makes one commit on the tip of the base branch
// and verifies it. merge (merge.go, merged.go) moves the base branch to a commit that
// was verified on exactly its parent; a merge is recorded before it is made, so that
// it is reported even if the process dies in between. probe waits for an origin that
// does not answer.
//
// At its start an implementer compares the journal with the repository
// (reconcile.go); later it gives back what tasks held when they end, and removes what
// intents left when a person asks for it (clean.go).
package implementer

import (
	"context"
	"log/slog"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/implementer/changes"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
)

// Implementer carries out the steps implement, execute, rebase and merge. It is safe
// for concurrent use.
type Implementer struct {
	repos *jobs.Set
	bus   *bus.Bus
	log   *slog.Logger
	id    forge.ReplicaID

	mu sync.Mutex
	// kept are the tasks whose heads this process kept, with their merges.
	kept map[taskKey][]store.PendingMerge
	// tidy counts background work that Run waits for.
	tidy sync.WaitGroup
	// crash is called at points where a crash is instructive; tests end there.
	crash func(point string)
	ready func()
	// key signs statements and merges.
	key     proof.Source
	changes changes.Store
	// results are the changes that passed here.
	results verify.Results
}

// Config says what an implementer works with.
type Config struct {
	Repositories *jobs.Set
	Bus          *bus.Bus
	Replica      forge.ReplicaID
	Log          *slog.Logger
	// Key signs statements about verify commands, and merges; nil: nothing is signed.
	Key proof.Source

	// Ready, if not nil, is called once, when everything that the previous
	// process left has been reported or removed.
	Ready func()
}

// New returns an implementer.
func New(cfg Config) *Implementer {
	if cfg.Ready == nil {
		cfg.Ready = func() {}
	}
	return &Implementer{
		repos: cfg.Repositories, bus: cfg.Bus, log: cfg.Log, id: cfg.Replica,
		kept: map[taskKey][]store.PendingMerge{}, crash: func(string) {}, ready: cfg.Ready, key: cfg.Key, changes: changes.Store{Bus: cfg.Bus, Log: cfg.Log},
	}
}

// Handlers returns the handlers for the worker that is passed to Run.
func (i *Implementer) Handlers() []service.Handler {
	return []service.Handler{
		{Step: forge.StepImplement, Agent: true, Do: i.implement},
		{Step: forge.StepExecute, Agent: true, Do: i.implement},
		{Step: forge.StepRebase, Lease: true, Do: i.rebase},
		{Step: forge.StepMerge, Lease: true, Regardless: true, Do: i.merge},
		{Step: forge.StepProbe, Do: i.repos.Probe},
	}
}

// Run reports the merges that the previous process made and did not report, gives back what is
// not needed any more, and has the worker, which was made with Handlers, work until ctx ends.
func (i *Implementer) Run(ctx context.Context, w *service.Worker) error {
	if err := i.repos.Prepare(ctx, i.reconcile); err != nil {
		return err
	}
	i.changes.Secrets.Store(w.Secrets)
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
