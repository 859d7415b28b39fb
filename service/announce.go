package service

import (
	"context"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/presence"
)

// tellEvery is how often it is looked whether others are to be told of this replica's health. A look costs a write of a few KiB every ten seconds.
const tellEvery = 2 * time.Second

// runnerName is the service that works for all projects, whichever it is configured with.
const runnerName = "runner"

// Announce makes this replica known to those who ask which services run, until ctx ends or
// it is called again, with why it is unable to work while it is. Agents are those whose programs were found here, and in is where they
// run; zero where that is not known yet. Also are projects beside those of the settings. What
// goes wrong is only logged: the work goes on without it.
func (e *Env) Announce(ctx context.Context, agents []string, in presence.Executor, also ...forge.ProjectID) {
	r := presence.Replica{Service: e.Name, ID: e.Config.Replica, Group: e.Config.Group, Version: Version(), Started: e.started, Agents: agents, Executor: in}
	if e.Name != runnerName {
		for _, p := range e.Config.Served() {
			r.Projects = append(r.Projects, p.ID)
		}
	}
	r.Projects = append(r.Projects, also...)
	e.mu.Lock()
	first := e.announced == nil
	e.announced = &r
	e.announce(ctx)
	e.mu.Unlock()
	if first {
		watching, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); e.tellHealth(watching) }()
		e.unwatch = func() { stop(); <-ended }
	}
}

// leave ends what Announce began: others do not see this replica any more.
func (e *Env) leave() {
	e.unwatch()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.withdraw()
}

// announce makes known what is announced, in place of what was announced before. The caller holds the lock.
func (e *Env) announce(ctx context.Context) {
	stop, err := e.Bus.Presence.Announce(ctx, *e.announced)
	if err != nil && ctx.Err() == nil {
		e.Log.ErrorContext(ctx, "others may not see that this service runs", "error", err)
	}
	if e.withdraw != nil {
		e.withdraw() // only now, so that it is always there
	}
	done := context.AfterFunc(ctx, stop)
	e.withdraw = func() {
		if done() {
			stop()
		}
	}
}

// tellHealth announces anew, until ctx ends, when this replica becomes unable to do its work, and when it can again.
func (e *Env) tellHealth(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		if why := e.Health.unwell(ctx); why != e.announced.Unwell && ctx.Err() == nil {
			now := *e.announced
			if now.Unwell == "" {
				now.Since = time.Now()
			}
			if now.Unwell = why; why == "" {
				now.Since = time.Time{}
			}
			e.announced = &now
			e.announce(ctx)
		}
		e.mu.Unlock()
	}
}
