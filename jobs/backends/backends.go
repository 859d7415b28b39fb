// Package backends puts together what a worker process needs to run agents: every
// agent that there is, with what it takes from the process's environment.
//
// The mains of the workers and package local call Open or Host; doctor calls CheckAll. It
// is the only place that imports all back ends: a new one is a line here (CONTRIBUTING.md).
// Credentials are read when a call begins, so a new key counts without a restart.
package backends

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/agent/cli"
	"github.com/pfl-forge/pfl-forge/agent/codex"
	"github.com/pfl-forge/pfl-forge/agent/exec"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/agent/gemini"
	"github.com/pfl-forge/pfl-forge/agent/opencode"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

// Host returns a host with all agents. stateDir is absolute and belongs to this
// process alone. The executor runs agents and commands; nil: this machine's
// namespaces, within the bounds. read has the agents' credentials.
func Host(stateDir string, executor process.Executor, bounds demand.Bounds, read Read, log *slog.Logger) jobs.Host {
	owner := process.NewOwner(stateDir).RunIn(executor).Within(bounds)
	models := openModels(read, log)
	return jobs.Host{
		StateDir: stateDir,
		Owner:    owner,
		Agents: []agent.Agent{
			claude.New(claude.Options{Owner: owner, Connect: models.connect(gateway.Anthropic)}),
			codex.New(cli.Options{Owner: owner, Connect: models.connect(gateway.OpenAI)}),
			gemini.New(cli.Options{Owner: owner, Connect: models.connect(gateway.Gemini)}),
			opencode.New(cli.Options{Owner: owner, Connect: models.connect(gateway.Anthropic)}),
			recipe.New(owner),
		},
		Own: func(name string, c config.AgentConfig) agent.Agent {
			own := exec.Credentials(name, func(prefix string) ([]string, error) { return read().Prefixed(prefix) })
			return exec.New(name, c, cli.Options{Owner: owner, Env: cli.NetworkEnv(), Connect: blamed(own)})
		},
		// Where build tools keep and find what they need: an operator sets these.
		Env:     process.Inherit("GOCACHE", "GOMODCACHE", "GOPROXY", "GONOSUMDB", "GOFLAGS", "npm_config_cache", "npm_config_registry"),
		Gateway: models.gateway,
		Log:     log,
	}
}

// installed returns the agents whose programs are in PATH. They have their programs' names. A
// recipe needs no program and is no agent that could be missing.
func installed() []string {
	return slices.DeleteFunc(config.Agents(), func(name string) bool { return name == config.AgentRecipe || !process.Installed(name) })
}

// Open opens the repositories that a service is configured to serve, which is not ready before. It
// continues to open those whose origins cannot be read yet, so an error is a setting that no
// waiting betters. The caller closes the set after its last job.
//
// It also tells the service's worker which commands to hold back (Hold), when to call this replica
// unwell, and announces the agents that were found.
func Open(ctx context.Context, env *service.Env) (*jobs.Set, error) {
	if err := env.Config.NeedProjects(); err != nil {
		return nil, err
	}
	var sources []jobs.Source
	for _, p := range env.Config.Served() {
		sources = append(sources, jobs.Source{Project: p.ID, URL: p.URL})
	}
	var opened atomic.Pointer[jobs.Set]
	env.Health.Add("repositories", func(context.Context) error {
		if set := opened.Load(); set != nil {
			return set.Opened()
		}
		return errors.New("being opened")
	})
	executor, err := openExecutor(ctx, env)
	if err != nil {
		return nil, err
	}
	host := Host(env.Config.StateDir, executor, env.Config.Commands.Bounds, env.Credentials, env.Log)
	host.Private = append(host.Private, env.Config.CredentialsDir)
	watchCredentials(env)
	if host.Sandbox = env.Config.Commands.Sandbox; executor != nil {
		host.Sandbox = demand.Require
	}
	host.FirstUse = env.Config.CloneAtFirstUse
	host.Metrics = env.Metrics
	announce(ctx, env, &host)
	if env.Bus != nil {
		host.Objects = env.Bus.Objects
		host.Owner.EndWhenStopped(work.LeaseGrace)
	}
	set, err := jobs.OpenSet(ctx, host, sources)
	if errors.Is(err, store.ErrAddress) {
		err = fmt.Errorf("--project (FORGE_PROJECTS): %w", err)
	}
	if err != nil {
		return nil, err
	}
	set.KeepOpening(ctx)
	env.Hold = func(cmd *forge.Command) error {
		return cmp.Or(env.Config.Elsewhere(cmd.To.Project), set.Hold(cmd), holdForCredentials(env, cmd))
	}
	env.Unwell, env.Elsewhere = set.Unwell, set.Elsewhere
	env.Health.Add("abilities", set.Check)
	env.AddHealthCheck(set.Lacks)
	if env.Bus != nil {
		if err := set.FollowCleaned(ctx, env.Bus); err != nil {
			return nil, errors.Join(err, set.Close())
		}
	}
	opened.Store(set)
	return set, nil
}
