package service

import (
	"context"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/presence"
)

// runnerName is the service that works for all projects, whichever it is configured with.
const runnerName = "runner"

// Announce makes this replica known to those who ask which services run, until ctx ends or it is
// called again, with why it is unable to work while it is. Agents are those whose programs were
// found here, and in is where they run; zero where that is not known yet. Also are projects
// beside those of the settings. What goes wrong is only logged: the work goes on without it.
func (e *Env) Announce(ctx context.Context, agents []string, in presence.Executor, also ...forge.ProjectID) {
	r := presence.Replica{Service: e.Name, ID: e.Config.Replica, Group: e.Config.Group, Version: Version(), Started: e.started, Agents: agents, Executor: in}
	if e.Name != runnerName {
		for _, p := range e.Config.Served() {
			r.Projects = append(r.Projects, p.ID)
		}
	}
	r.Projects = append(r.Projects, also...)
	e.announcer.Announce(ctx, e.Bus.Presence, e.Log, &r)
}

// AddHealthCheck adds a check, whose error others are told for as long as there
// is one, as announced.Announcer.Tell says.
func (e *Env) AddHealthCheck(check func(context.Context) error) { e.announcer.AddCheck(check) }
