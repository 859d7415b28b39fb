package repository

import (
	"regexp"
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
		if !isModel(g.Model) {
			return agent.Fail(forge.FailConfig, "goal.model is %.128q: it has to be a model's name as the agent takes it, without spaces and commas", g.Model)
		}
		call.Model = g.Model
	}
	if len(g.Tools) > 0 {
		call.Tools, err = goalTools(g.Tools, call.Tools)
	}
	return err
}

// isModel refuses what a program could take for an option or several arguments.
func isModel(s string) bool {
	return len(s) <= 128 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == ',' })
}

// toolShape is a tool's name, and, in parentheses, what it may be used for.
var toolShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}(\([^(),\x00-\x1f\x7f]{1,200}\))?$`)

// goalTools returns those of the tools that are wanted which the project allows too, and
// for no more than it allows them.
func goalTools(wanted, allowed []string) ([]string, error) {
	var out []string
	for _, want := range wanted {
		if !toolShape.MatchString(want) {
			return nil, agent.Fail(forge.FailConfig, "goal.tools (allowed_tools in a file) has %.100q: it has to be a tool such as Edit, or Bash(go test:*)", want)
		}
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
