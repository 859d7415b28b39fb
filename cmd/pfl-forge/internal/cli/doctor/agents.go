package doctor

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/jobs/backends"
)

// WarnAgents warns a person, before they submit an intent, when the agents that its steps
// would go to cannot do them here, as far as that can be known: a recipe never can, and the
// others need their program. What names the intent ("an audit"), and cannot what a recipe is
// no good for ("cannot audit").
//
// It warns and never refuses: the agent may be there by the time that the step
// runs, and the configuration of the base branch may be another one. Each agent
// is looked at once, however many steps have it. Warnings go to standard error.
func WarnAgents(ctx context.Context, a *kit.App, t *target.Target, i *forge.Intent, what, cannot string, steps ...forge.Step) {
	if t.Repo == nil || t.Remote {
		return // it is done elsewhere
	}
	base, err := t.Repo.Base(ctx)
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
			a.Say("%s", a.Style(a.Err).Attention("a recipe "+cannot+": give --agent, or set roles."+config.RoleOf(string(step))+" in "+config.FileName+
				" to an agent that drives a model"))
			continue
		}
		warnAgent(ctx, a, base.Config, t.Repo.Root, name, what)
	}
}

// warnAgent warns when an agent's program does not work here, unless another agent stands in.
// Only this one is looked for, because looking runs its program, and a person waits meanwhile.
func warnAgent(ctx context.Context, a *kit.App, cfg *config.Project, root, name, what string) {
	if len(cfg.Fallback) > 0 {
		return // another one stands in
	}
	alone := config.Project{Agent: name, Agents: map[string]config.AgentConfig{}}
	if own, ok := cfg.Agents[name]; ok {
		alone.Agents[name] = own
	}
	for _, f := range checkAgents(ctx, &alone, root) {
		if f.Health != diagnosis.Healthy {
			a.Say("%s", a.Style(a.Err).Attention(what+" needs the agent "+name+", which does not work here: "+kit.Safe(f.Detail)+"; see pfl-forge doctor"))
		}
	}
}

// checkAgents looks for the programs of all agents that the configuration names.
//
// A program that is missing or does not start is a warning and no failure:
// recipes need none. The programs are asked for their version in a folder that
// is made for it and removed, within a minute for all.
func checkAgents(ctx context.Context, cfg *config.Project, root string) []diagnosis.Finding {
	dir, err := os.MkdirTemp("", "pfl-forge-doctor-")
	if err != nil {
		return []diagnosis.Finding{diagnosis.New("agents", diagnosis.Warning, err.Error(), "")}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var found []diagnosis.Finding
	for _, c := range backends.CheckAll(ctx, cfg, dir, root) {
		f := diagnosis.New(c.Agent, diagnosis.Healthy, c.Version, "")
		switch {
		case c.Problem != nil:
			f.Health, f.Detail = diagnosis.Warning, strings.TrimSpace(c.Version+" "+c.Problem.Message)
			f.Hint = "recipes work without it"
		case c.Version == "":
			f.Detail = "program found"
		}
		found = append(found, f)
	}
	return found
}

// checkEffort says which agents cannot be told how much to think, although the
// configuration does. It is a warning only where the project has changed the levels: the
// others save money, and nothing else. It reads the configuration alone, and runs nothing.
func checkEffort(cfg *config.Project) []diagnosis.Finding {
	var found []diagnosis.Finding
	for _, name := range cfg.UsedAgents() {
		ignored := cfg.EffortIgnored(name)
		if len(ignored) == 0 {
			continue
		}
		f := diagnosis.New("effort", diagnosis.Healthy, name+" has no setting for effort, so these have no effect on it: "+strings.Join(ignored, ", "), "")
		if cfg.Calls.Effort != config.Default().Calls.Effort {
			f.Health, f.Hint = diagnosis.Warning, "choose its model in agents."+name+".models instead, or another agent in roles"
		}
		found = append(found, f)
	}
	return found
}
