package jobs

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

// configureGoal applies the goal's own model and tools to a call of its executing
// agent. The model is applied only to the back end that was chosen, because a
// fallback may not know it.
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

// goalTools returns those of the wanted tools that the project allows. A restriction
// such as Bash(go test) of the project stays in force; if nothing is left, that is a
// forge.FailConfig.
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

// toolName returns the name of a tool without its restriction in parentheses.
func toolName(tool string) string {
	name, _, _ := strings.Cut(tool, "(")
	return name
}
