package repository

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

// configureGoal puts what the goal says of its executing agent in the place of what the
// project says. chosen: it is nobody who stands in, and may not know the model.
func (j *Job) configureGoal(call *agent.Call, chosen bool) (err error) {
	g := j.Command.Intent.Goal
	if g == nil {
		return nil
	}
	if g.Model != "" && chosen {
		call.Model = g.Model
	}
	if len(g.Tools) > 0 {
		call.Tools, err = goalTools(g.Tools, call.Tools)
	}
	return err
}

// goalTools returns those of the tools that are wanted which the project allows too, and
// for no more than it allows them.
func goalTools(wanted, allowed []string) ([]string, error) {
	var out []string
	for _, want := range wanted {
		if slices.Contains(allowed, toolName(want)) {
			out = append(out, want)
			continue
		}
		for _, a := range allowed {
			if toolName(a) == toolName(want) {
				out = append(out, a)
			}
		}
	}
	if len(out) == 0 {
		return nil, agent.Fail(forge.FailConfig, "goal.tools (allowed_tools in a file) has none of the tools that worker_tools in %s allows: %s",
			config.FileName, strings.Join(allowed, ", "))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// toolName is the name of a tool without what it may be used for.
func toolName(tool string) string {
	name, _, _ := strings.Cut(tool, "(")
	return name
}
