package local

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/analyzer"
	"github.com/pfl-forge/pfl-forge/services/implementer"
	"github.com/pfl-forge/pfl-forge/services/reflector"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

const (
	// replica names the workers of a run. There is one run at a time, and the next
	// one finds its checkouts and sessions.
	replica = forge.ReplicaID("local")
	// stateDir has the state of repositories and agents.
	stateDir = "host"
	// longestEnd is how long the end of a run for one intent waits for the agents of others.
	longestEnd = 24 * time.Hour
)

// worker is one of the services that take commands.
type worker struct {
	name     string
	handlers []service.Handler
	run      func(context.Context, *service.Worker) error
}

// workers returns the four services that take commands. The implementer closes
// r.reconciled when it has looked at the checkouts of the run before.
func (r *activeRun) workers(repos *jobs.Set) []worker {
	analyze := analyzer.New(repos, r.Log)
	implement := implementer.New(implementer.Config{
		Repositories: repos, Bus: r.session.Bus, Replica: replica, Log: r.Log, Ready: func() { close(r.reconciled) },
		Key: r.Keys.Source("implementer"),
	})
	review := reviewer.New(repos, replica, r.Keys.Source("reviewer"))
	reflect := reflector.New(repos)
	return []worker{
		{"analyzer", analyze.Handlers(), analyze.Run},
		{"implementer", implement.Handlers(), implement.Run},
		{"reviewer", review.Handlers(), review.Run},
		{"reflector", reflect.Handlers(), reflect.Run},
	}
}

// announce makes the services of a run known to those who talk to its server as to an
// organisation's, with where they run agents and commands.
func (r *activeRun) announce(ctx context.Context, workers []worker, in presence.Executor) (stops []func()) {
	names := []string{"runner"}
	for _, w := range workers {
		names = append(names, w.name)
	}
	for _, name := range names {
		one := presence.Replica{Service: name, ID: replica, Version: service.Version(), Started: time.Now().UTC()}
		if name != "runner" {
			one.Projects, one.Executor = []forge.ProjectID{r.Repo.Project}, in
		}
		stop, err := r.session.Bus.Presence.Announce(ctx, one)
		if err != nil {
			r.Log.WarnContext(ctx, "others may not see that this run is active", "service", name, "error", err)
		}
		stops = append(stops, stop)
	}
	return stops
}

// unconfined says in one line that commands run beside the person's files, and which.
func unconfined(in presence.Executor) string {
	if in.Required {
		return "unconfined: no sandbox can be made here, so only recipes run that you ask for yourself; pfl-forge doctor says why"
	}
	return "unconfined: agents and commands run without a sandbox and reach your files, keys and logins (" + in.Reason + ")"
}

// startWorkers starts the workers of every step, which share the permits for agents
// and stop when ctx ends: at once, or, in a run for one intent, when running attempts have
// ended or the person hurries. wait returns when they have handed everything back.
func (r *activeRun) startWorkers(ctx context.Context, hurry <-chan struct{}) (wait func() error, err error) {
	host := backends.Host(filepath.Join(r.Repo.Root, layout.Dir, stateDir), nil, r.Bounds, backends.Environment, r.Log)
	host.Allow, host.Sandbox, host.Alone = r.Trust.Check, r.Sandbox, true // only this user reaches the server
	host.Private = append(host.Private, r.Trust.Store(), string(r.Keys))  // where an agent could say that it is trusted, or sign
	repos, err := jobs.OpenSet(ctx, host, []jobs.Source{{Project: r.Repo.Project, Path: r.Repo.Root, Store: r.Repo.Store}})
	if err != nil {
		return nil, err
	}
	parallel := r.Base.Config.ParallelWorkers
	grace := time.Millisecond
	if r.Only != "" {
		grace = longestEnd
	}
	permits := service.NewPermits(parallel)
	secrets := redact.New(append(redact.Environ(environ.All()), r.session.server.Endpoint().Token)...)
	var running sync.WaitGroup
	workers := r.workers(repos)
	in := backends.Describe(ctx, host.Owner, host.Sandbox)
	if in.Name == forge.ExecutorNone {
		r.Observer.Notice(unconfined(in))
	}
	for _, stop := range r.announce(ctx, workers, in) {
		context.AfterFunc(ctx, stop)
	}
	for _, w := range workers {
		running.Go(func() {
			outbox, err := service.OpenOutbox(filepath.Join(r.Repo.Root, layout.Dir, stateDir, "outbox", w.name), r.Log)
			if err != nil {
				r.Log.WarnContext(ctx, "results are not kept until they are journaled", "error", err)
			}
			err = w.run(ctx, &service.Worker{
				Bus: r.session.Bus, Replica: replica, Log: r.Log.With("service", w.name), Handlers: w.handlers,
				Parallel: parallel, Permits: permits, Outbox: outbox, Grace: grace, Hurry: hurry,
				Secrets: secrets, LogDir: filepath.Join(r.Repo.Root, layout.Dir, layout.Logs),
			})
			if ctx.Err() == nil {
				r.fail(errors.Join(errors.New("the "+w.name+" ended"), err))
			}
		})
	}
	return func() error {
		running.Wait()
		return repos.Close()
	}, nil
}
