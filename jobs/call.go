package jobs

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/jobs/gate"
	"github.com/pfl-forge/pfl-forge/jobs/ledger"
)

// Run has the command's agent make one call, and notes in the Result what it used.
// The caller says what is to be done, where, and in which session; the project's
// models, tools and limits are filled in, and for a recipe its name and values.
func (j *Job) Run(ctx context.Context, call agent.Call) (agent.Outcome, error) {
	a, err := j.Agent()
	if err != nil {
		return agent.Outcome{}, err
	}
	// Which agent it would have been is known only here: by the configuration,
	// what is installed, and who stands in.
	if slices.Contains(j.Command.ClosedAgents, a.Name()) {
		j.Result.Agent = a.Name() // so that the rules know which account is waited for
		return agent.Outcome{}, agent.Fail(forge.FailHeld, "no call was made: the account of %s is known to refuse calls", a.Name())
	}
	if unreserved(j.Command, a.Name(), j.Config.Budget) {
		return agent.Outcome{}, errUnreserved
	}
	scratch, remove, err := j.host.scratch()
	if err != nil {
		return agent.Outcome{}, err
	}
	defer remove()
	layer, removeLayer, err := j.host.scratch()
	if err != nil {
		return agent.Outcome{}, err
	}
	defer removeLayer()
	call.ScratchDir = scratch
	if call.Dir == "" {
		call.Dir = scratch // there is nothing to see, and nothing to harm
	}
	j.dir = call.Dir
	j.configure(&call, j.Config.ModelsOf(a.Name()), a.Name() == j.Config.AgentFor(string(j.Command.Attempt.Step)))
	j.Called = forge.Reviewer{Agent: a.Name(), Model: call.Model}
	if call.Role == agent.RoleExecute {
		if err := j.configureGoal(&call, a.Name() == j.chosen()); err != nil {
			return agent.Outcome{}, err
		}
	}
	where := place{dir: call.Dir, readOnly: call.ReadOnly, scratch: scratch, layer: layer, by: byModels, network: j.Config.Policy.Network}
	if a.Name() == config.AgentRecipe {
		// A recipe's check may build: its checkout is writable, and what it changes is thrown away.
		where.readOnly, where.by, where.network = false, byCommands, j.Config.Policy.CommandNetwork
	} else if call.StateDir != "" {
		where.state = filepath.Join(call.StateDir, a.Name()) // what else is there is ours
		if err := os.MkdirAll(where.state, 0o700); err != nil {
			return agent.Outcome{}, err
		}
	}
	call.Env = j.environment(where.by, call.Env...)
	if call.Sandbox, err = j.confine(ctx, where); err != nil {
		return agent.Outcome{}, err
	}
	sink := j.sink(a.Name())
	var used *ledger.Meter
	if where.state != "" {
		used = j.meter(call.StateDir)
		sink = used.Watch(sink)
	}
	traced, end := telemetry.Span(ctx, "agent "+a.Name())
	call.Env = append(call.Env, telemetry.Environment(traced)...)
	own := len(j.Config.Agents[a.Name()].Command) > 0
	out, err := j.host.gates.Run(traced, gate.Account(j.Command.To.Project, a.Name(), own),
		gate.Caller{Project: j.Command.To.Project, Known: j.Command.Accounts}, a, call, sink)
	end(err)
	r := &j.Result
	r.Agent, r.Model, r.Usage = a.Name(), out.Model, r.Usage.Add(out.Usage)
	if used != nil {
		used.End(out.Usage)
	}
	if r.Session = out.Session; r.Session == "" {
		r.Session = call.Session.ID
	}
	return out, err
}

// configure fills in what the project's configuration says about calls of this role:
// tools, model, effort, limits, and for a recipe its name and values. models are those of
// the chosen back end; configured says that it is the one of the project for this step, whose
// models a stronger call names. Turns that the call has already are added to those of the project.
func (j *Job) configure(call *agent.Call, models config.Models, configured bool) {
	c, cmd := j.Config, j.Command
	spec := agent.Spec(call.Role)
	call.ReadOnly = spec.ReadOnly()
	if call.Schema == nil {
		call.Schema = spec.Schema
	}
	call.Tools = spec.ToolsOf(c)
	switch spec.Model {
	case agent.ModelTriageDeep:
		call.Model = models.TriageDeep
	case agent.ModelDefault:
		call.Model = models.Default
		if !spec.ReadOnly() && cmd.Task.Complexity == forge.ComplexityHigh {
			call.Model = models.Complex
		}
	}
	role := config.RoleOf(string(spec.Step))
	call.Effort = c.Calls.Effort.For(role, cmd)
	if s := cmd.Stronger; s != nil && configured {
		call.Model = cmp.Or(s.Model, call.Model)
	} else if in := cmd.Review(); in.Second != nil {
		call.Model = c.SecondAfter(in).Model
	}
	call.Limits.MaxTurns += c.Calls.MaxTurns
	call.Limits.Wall = c.Timeouts.Review
	switch role {
	case "analyze":
		call.Limits.Wall = c.Timeouts.Analyze
	case "implement":
		call.Limits.Wall = c.Timeouts.Implement
	}
	call.Limits.Idle = c.Timeouts.Idle
	call.Limits.BudgetUSD = cmd.BudgetUSD
	call.Recipe = &agent.RecipeCall{
		Project: c, Name: cmd.Intent.Recipe, With: j.values(), Intent: cmd.To.Intent, Title: cmd.Intent.Title,
		TaskID: cmd.Attempt.Task, Task: cmd.Task.Name, Item: cmd.Task.Item,
		Attempt: max(cmd.Task.Attempts, 1), Feedback: cmd.Implement().Feedback,
	}
}

// values returns the recipe's parameters: those that the intent was submitted with,
// overridden by those that a person answered later.
func (j *Job) values() map[string]string {
	with := maps.Clone(j.Command.Intent.With)
	for _, c := range j.Command.Intent.Clarifications {
		if c.Param != "" && c.Answer != nil {
			if with == nil {
				with = map[string]string{}
			}
			with[c.Param] = *c.Answer
		}
	}
	return with
}

// errUnreserved is returned for a call without reserved money where there is a budget.
var errUnreserved = agent.Fail(forge.FailUnreserved, "the project has a budget, and no money was reserved for this call")

// unreserved reports whether a call would cost money that was not reserved, although there is a
// budget: a runner that has not heard of it reserves none.
func unreserved(cmd *forge.Command, agentName string, b config.Budget) bool {
	limited := b.IntentUSD > 0 || b.ProjectUSD > 0 || b.DayUSD > 0 || cmd.Intent.BudgetUSD > 0
	return limited && cmd.BudgetUSD <= 0 && agentName != config.AgentRecipe
}
