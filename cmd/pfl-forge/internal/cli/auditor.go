package cli

import (
	"cmp"
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// warnAuditor says so when the agent that an audit would go to cannot do it here, as far
// as that can be known: a recipe never can, and the others need their program.
func (a *app) warnAuditor(ctx context.Context, t *target, i *forge.Intent) {
	if t.repo == nil || t.remote {
		return // it is done elsewhere
	}
	base, err := t.repo.Base(ctx)
	if err != nil {
		return // the analysis says what is wrong
	}
	step := string(forge.StepAudit)
	name := cmp.Or(i.Agent, base.Config.AgentFor(step))
	if name == config.AgentRecipe {
		a.say("%s", a.style(a.err).Attention("a recipe cannot audit: give --agent, or set roles."+config.RoleOf(step)+" in "+config.FileName+
			" to an agent that drives a model"))
		return
	}
	if len(base.Config.Fallback) > 0 {
		return // another one stands in
	}
	alone := config.Project{Agent: name, Agents: map[string]config.AgentConfig{}}
	if own, ok := base.Config.Agents[name]; ok {
		alone.Agents[name] = own
	}
	for _, f := range checkAgents(ctx, &alone) {
		if f.Health != healthy {
			a.say("%s", a.style(a.err).Attention("an audit needs "+name+", which may not work here: "+safe(f.Detail)))
		}
	}
}
