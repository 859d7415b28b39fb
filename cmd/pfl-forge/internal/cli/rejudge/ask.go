package rejudge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/trusting"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
	"github.com/pfl-forge/pfl-forge/jobs/caches"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

// replica names the reviewer that answers here. No run has a replica of this name, and it signs
// nothing.
const replica = forge.ReplicaID("rejudge")

// other replaces parts of the project's configuration. The zero value replaces nothing: then the
// comparison shows how steady the same reviewer is.
type other struct {
	// agent and model are the back end and its model; empty: those that the project configures.
	agent, model string
	// system has system prompts by step; empty: the reviewer's own.
	system map[forge.Step]string
}

// adjust changes a configuration: other back ends and models for reviews, and checkouts in a folder
// that no run uses. Nothing signs, and nothing is written where a run would find it.
func (o *other) adjust(dir string) func(*config.Project) {
	return func(p *config.Project) {
		p.WorktreeDir = filepath.Join(dir, "worktrees")
		if o.agent != "" {
			roles := map[string]string{"review": o.agent}
			for role, name := range p.Roles {
				if role != "review" {
					roles[role] = name
				}
			}
			p.Roles, p.Fallback = roles, nil // another one that stood in would be compared under a wrong name
		}
		if o.model == "" {
			return
		}
		p.Models.Default = o.model
		agents := map[string]config.AgentConfig{}
		for _, name := range p.AgentNames() {
			c := p.Agents[name]
			c.Models.Default = o.model
			agents[name] = c
		}
		p.Agents = agents
	}
}

// command returns the command to ask again with, for so many US dollars at most.
// Nothing in it names an agent or model in place of those that are to be tried.
func (o *other) command(old *forge.Command, usd float64) forge.Command {
	cmd := *old
	cmd.BudgetUSD, cmd.Replica, cmd.LimitedAgents = usd, "", nil
	cmd.Session, cmd.Resume = agent.NewSessionID(), false
	if o.agent != "" {
		cmd.Intent.Agent = ""
	}
	if o.agent != "" || o.model != "" {
		cmd.Stronger = nil // its model is one of the agent of then
	}
	if forge.As[*forge.ReviewInput](cmd.Input) != nil {
		in := cmd.Review()
		in.MayAsk = 0 // nothing is run here; what the checks of then said, it is told
		if o.agent != "" || o.model != "" {
			in.Second, in.First = nil, forge.Reviewer{} // the question is the same for the first and the second
		}
		cmd.Input = &in
	}
	return cmd
}

// asker asks reviewers and judges of its own.
type asker struct {
	repos *jobs.Set
	// dir holds checkouts, caches and scratch files until close. It is outside
	// of the repository, so that a run may begin or go on meanwhile.
	dir string
	// do has the handlers of the reviewer, whose results are compared here and sent nowhere.
	do    map[forge.Step]service.Handler
	other *other
	// least is the confidence that a claim needs.
	least float64
}

// newAsker opens the repository beside whatever runs in it. The caller closes it.
func newAsker(ctx context.Context, a *kit.App, t *target.Target, o *other) (_ *asker, err error) {
	base, err := t.Repo.Base(ctx)
	if err != nil {
		return nil, err
	}
	guard, err := trusting.Ask(ctx, a, t.Repo, base, false)
	if err != nil {
		return nil, err
	}
	sandboxes, bounds, err := run.Demand(a)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pfl-forge-rejudge-")
	if err != nil {
		return nil, err
	}
	host := backends.Host(filepath.Join(dir, "host"), nil, bounds, backends.Environment, a.Log())
	host.Allow, host.Sandbox, host.Alone, host.Adjust = guard.Check, sandboxes, true, o.adjust(dir)
	host.Private = append(host.Private, guard.Store(), string(local.Keys(a.Getenv)))
	repos, err := jobs.OpenSet(ctx, host, []jobs.Source{{Project: t.Project, Path: t.Repo.Root, Store: t.Repo.Store}})
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, caches.RemoveAll(dir))
	}
	r := reviewer.New(repos, replica, nil)
	for step, text := range o.system {
		r.Instruct(step, text)
	}
	q := &asker{repos: repos, dir: dir, do: map[forge.Step]service.Handler{}, other: o, least: base.Config.Review.MinConfidence}
	for _, h := range r.Handlers() {
		q.do[h.Step] = h
	}
	return q, nil
}

// close removes the checkouts, caches and scratch files.
func (q *asker) close() error {
	if err := q.repos.Close(); err != nil {
		return err
	}
	return caches.RemoveAll(q.dir)
}

// ask gives a command to a reviewer once more, in a conversation of its own, for so many
// US dollars at most, and compares the answers. A failure is part of the comparison.
func (q *asker) ask(ctx context.Context, old *question, usd float64) comparison {
	cmd := q.other.command(&old.command, usd)
	c := comparison{
		Intent: cmd.To.Intent, Task: cmd.Attempt.Task, Step: cmd.Attempt.Step, Attempt: cmd.Attempt.Number,
		Head: cmd.Task.Head, Before: weigh(&cmd, &old.result, q.least),
	}
	r := q.do[cmd.Attempt.Step].Do(ctx, cmd, func(forge.Progress) {})
	c.Tokens, c.CachedTokens, c.CostUSD = render.Fresh(&r.Usage), render.Cached(&r.Usage), r.Usage.CostUSD
	if !answered(&r) {
		c.Error = "no answer"
		if f := r.Failure(); f != nil {
			c.Error = fmt.Sprintf("%s: %s", f.Reason, f.Message)
		}
		return c
	}
	now := weigh(&cmd, &r, q.least)
	c.Now = &now
	c.Agrees, c.Flips = compare(nouns[c.Step], &c.Before, &now)
	return c
}

// nouns has the name of one entry of a step's claims.
var nouns = map[forge.Step]string{forge.StepReview: "requirement", forge.StepJudge: "criterion"}
