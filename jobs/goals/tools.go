package goals

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
)

// Tools returns those of the wanted tools that the project allows. A restriction
// such as Bash(go test) of the project stays in force; if nothing is left, that is a
// forge.FailConfig.
func Tools(wanted, allowed []string) ([]string, error) {
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
