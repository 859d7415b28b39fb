package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// warnAuditor says so when the agent that an audit would go to cannot do it here.
func (a *app) warnAuditor(ctx context.Context, t *target, i *forge.Intent) {
	a.warnAgents(ctx, t, i, "an audit", "cannot audit", forge.StepAudit)
}

// warnAgents says so when the agents that some steps of an intent would go to cannot do
// them here, as far as that can be known: a recipe never can, and the others need their
// program.
func (a *app) warnAgents(ctx context.Context, t *target, i *forge.Intent, what, cannot string, steps ...forge.Step) {
	if t.repo == nil || t.remote {
		return // it is done elsewhere
	}
	base, err := t.repo.Base(ctx)
	if err != nil {
		return // the analysis says what is wrong
	}
	var told []string
	for _, step := range steps {
		name := cmp.Or(i.Agent, base.Config.AgentFor(string(step)))
		if slices.Contains(told, name) {
			continue
		}
		told = append(told, name)
		if name == config.AgentRecipe {
			a.say("%s", a.style(a.err).Attention("a recipe "+cannot+": give --agent, or set roles."+config.RoleOf(string(step))+" in "+config.FileName+
				" to an agent that drives a model"))
			continue
		}
		a.warnAgent(ctx, base.Config, name, what)
	}
}

func (a *app) warnAgent(ctx context.Context, cfg *config.Project, name, what string) {
	if len(cfg.Fallback) > 0 {
		return // another one stands in
	}
	alone := config.Project{Agent: name, Agents: map[string]config.AgentConfig{}}
	if own, ok := cfg.Agents[name]; ok {
		alone.Agents[name] = own
	}
	for _, f := range checkAgents(ctx, &alone) {
		if f.Health != healthy {
			a.say("%s", a.style(a.err).Attention(what+" needs "+name+", which may not work here: "+safe(f.Detail)))
		}
	}
}
