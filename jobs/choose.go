package jobs

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent returns the back end that does the command: the one that the intent names,
// the recipe back end if it names a recipe, or the one that the project configures
// for the step. If that one is at its limit, the first of the project's fallbacks
// that is not, is installed and may do the work takes its place. If there is none the
// chosen one is returned all the same: it reports until when its limit lasts. A second
// reviewer has no fallback: that could be who made the first review.
func (j *Job) Agent() (agent.Agent, error) {
	chosen := j.chosen()
	if chosen == config.AgentRecipe || j.Command.Review().Second != nil || !slices.Contains(j.Command.LimitedAgents, chosen) {
		return j.named(chosen)
	}
	for _, name := range j.Config.Fallback {
		if slices.Contains(j.Command.LimitedAgents, name) || !j.can(name) {
			continue
		}
		a, err := j.named(name)
		if err == nil && found(a) {
			return a, nil
		}
	}
	return j.named(chosen)
}

// chosen returns the name of the back end before fallbacks. A reflection is about the
// whole project, so it is never the recipe's only because the intent that ended last
// used one.
func (j *Job) chosen() string {
	in, step := &j.Command.Intent, j.Command.Attempt.Step
	switch {
	case j.Command.Review().Second != nil:
		return j.Config.SecondAfter(j.Command.Review()).Agent
	case step == forge.StepReflect && (in.Agent == "" || in.Agent == config.AgentRecipe):
	case in.Agent != "":
		return in.Agent
	case in.Recipe != "":
		return config.AgentRecipe
	}
	return j.Config.AgentFor(string(step))
}

// can reports whether a fallback may do the command's step. A program that the
// project itself defines may do a reading step only if a sandbox, or its own
// read_only setting, keeps it from writing.
func (j *Job) can(name string) bool {
	own := j.Config.Agents[name]
	return len(own.Command) == 0 || own.ReadOnly || !unconfined(j) ||
		j.Command.Attempt.Step == forge.StepImplement || j.Command.Attempt.Step == forge.StepExecute
}

// found reports whether the program of a back end is installed; true where that
// cannot be known before a call.
func found(a agent.Agent) bool {
	f, ok := a.(interface{ Found() error })
	return !ok || f.Found() == nil
}

// named returns the back end with a name: one of the host's, or one that the project
// defines. The error is a forge.FailConfig that lists the names there are.
func (j *Job) named(name string) (agent.Agent, error) {
	var known []string
	for _, a := range j.host.Agents {
		if a.Name() == name {
			return a, nil
		}
		known = append(known, a.Name())
	}
	for _, own := range j.Config.AgentNames() {
		c := j.Config.Agents[own]
		if len(c.Command) == 0 || j.host.Own == nil {
			continue
		}
		if own == name {
			return j.host.Own(name, c), nil
		}
		known = append(known, own)
	}
	return nil, agent.Fail(forge.FailConfig, "there is no agent %q here; known are %s", name, strings.Join(known, ", "))
}

// NeedModel returns a forge.FailConfig, for a person to mend, if the command's step
// was given to the recipe back end, which cannot do it.
func (j *Job) NeedModel() error {
	recipe, err := j.IsRecipe()
	if err != nil || !recipe {
		return err
	}
	step := string(j.Command.Attempt.Step)
	return agent.Fail(forge.FailConfig, "a recipe cannot %s: set agent, or roles.%s, in %s to an agent that drives a model, or name one in the intent",
		step, config.RoleOf(step), config.FileName)
}

// IsRecipe reports whether the command is for the recipe back end.
func (j *Job) IsRecipe() (bool, error) {
	a, err := j.Agent()
	return err == nil && a.Name() == config.AgentRecipe, err
}
