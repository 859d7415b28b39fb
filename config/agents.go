package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// AgentConfig configures one back end: the models of one of [Agents], or a program of the
// project's own.
type AgentConfig struct {
	// Command is the program and its arguments, for a back end of the project's own. The
	// program is found in PATH or has an absolute path, which an agent cannot change.
	Command []string `yaml:"command"`
	// ReadOnly says that the program changes nothing when it is told so, even without a
	// sandbox. That it did not is checked after each call.
	ReadOnly bool `yaml:"read_only"`
	// Models names the models as this back end calls them.
	Models Models `yaml:"models"`
}

// RoleNames returns the keys of Project.Roles: the kinds of work that a back end can be
// chosen for. [RoleOf] says which steps each of them has.
func RoleNames() []string { return []string{"analyze", "implement", "review", "reflect"} }

// AgentNames returns the names of all back ends of the project: those of [Agents] first,
// then its own, sorted.
func (p *Project) AgentNames() []string {
	names := Agents()
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// RoleOf returns the role that a step belongs to, one of [RoleNames]. A step that no agent
// does, such as rebase, is returned as it is.
func RoleOf(step string) string {
	s := forge.Step(step)
	if !s.CallsAgent() {
		return step
	}
	switch s.Service() {
	case "analyzer":
		return "analyze"
	case "implementer":
		return "implement"
	case "reviewer":
		return "review"
	}
	return "reflect"
}

// AgentFor returns the name of the back end that does a step (or a role) for an intent that
// names neither a back end nor a recipe.
func (p *Project) AgentFor(step string) string {
	if name := p.Roles[RoleOf(step)]; name != "" {
		return name
	}
	return p.Agent
}

// UsedAgents returns the names of the back ends that the configuration names, each once, the
// default one first. It serves to check that their programs are installed.
func (p *Project) UsedAgents() []string {
	used := []string{p.Agent}
	for _, role := range RoleNames() {
		used = append(used, p.AgentFor(role))
	}
	if second := p.SecondReviewer(); second.Agent != "" {
		used = append(used, second.Agent)
	}
	used = append(used, p.Fallback...)
	used = append(used, slices.Sorted(maps.Keys(p.Agents))...)
	var out []string
	for _, name := range used {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ModelsOf returns the models of a back end. Kinds of work that have none get the default
// one; an empty name leaves the choice to the back end's program.
func (p *Project) ModelsOf(name string) Models {
	if name == AgentClaude {
		return p.Models
	}
	m := p.Agents[name].Models
	for _, model := range []*string{&m.TriageDeep, &m.Complex} {
		if *model == "" {
			*model = m.Default
		}
	}
	return m
}

// agents checks everything that names or configures back ends.
func (c *checker) agents(p *Project) {
	known := p.AgentNames()
	c.oneOf("agent", p.Agent, known)
	for _, role := range slices.Sorted(maps.Keys(p.Roles)) {
		if !slices.Contains(RoleNames(), role) {
			c.fail("roles."+role, "unknown key%s; known keys are %s", suggestion("; ", role, RoleNames()), strings.Join(RoleNames(), ", "))
			continue
		}
		c.oneOf("roles."+role, p.Roles[role], known)
		if p.Roles[role] == AgentRecipe {
			c.fail("roles."+role, "%s does what an intent's recipe says, never the work of one role", AgentRecipe)
		}
	}
	for i, name := range p.Fallback {
		at := fmt.Sprintf("fallback[%d]", i)
		c.oneOf(at, name, known)
		switch {
		case name == AgentRecipe:
			c.fail(at, "%s cannot stand in for an agent", AgentRecipe)
		case slices.Contains(p.Fallback[:i], name):
			c.fail(at, "%q is given twice", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		c.agent("agents."+name, name, p.Agents[name])
	}
}

// agent checks the configuration of one back end.
func (c *checker) agent(field, name string, a AgentConfig) {
	switch {
	case name == AgentClaude:
		c.fail(field, "the models of %s are in models", AgentClaude)
		return
	case name == AgentRecipe:
		c.fail(field, "%s has no models and no command", AgentRecipe)
		return
	case slices.Contains(Agents(), name):
		for _, key := range []string{".command", ".read_only"} {
			if c.pos.Has(field + key) {
				c.fail(field+key, "goes with a program of your own; %s is one that there is", name)
			}
		}
	case !nameShape.MatchString(name):
		c.fail(field, "agent name %q must be a-z, 0-9, - and _, starting with a letter or digit, at most 64", name)
	case len(a.Command) == 0:
		c.fail(field, "needs a command%s", suggestion(", or ", name, Agents()))
	case strings.TrimSpace(a.Command[0]) == "":
		c.fail(field+".command[0]", "must not be empty")
	case strings.Contains(a.Command[0], "/") && !strings.HasPrefix(a.Command[0], "/"):
		c.fail(field+".command[0]", "%q must be absolute, or a name to find in PATH: a file of the repository could be changed by who works there",
			a.Command[0])
	}
	for i, s := range a.Command {
		c.noNUL(fmt.Sprintf("%s.command[%d]", field, i), s)
	}
	for key, model := range map[string]string{
		"triage_deep": a.Models.TriageDeep, "default": a.Models.Default, "complex": a.Models.Complex,
	} {
		if model != "" || c.pos.Has(field+".models."+key) {
			c.word(field+".models."+key, model)
		}
	}
}
