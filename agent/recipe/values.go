package recipe

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// maxValue bounds the value of a parameter, in bytes.
const maxValue = 32 << 10

// checkValues refuses values without a parameter, and values that cannot be environment
// variables.
func checkValues(c *agent.RecipeCall, r config.Recipe) error {
	var names []string
	for _, p := range r.Params {
		names = append(names, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.With)) {
		value := c.With[name]
		switch {
		case !slices.Contains(names, name):
			return agent.Fail(forge.FailConfig, "recipe %q has no parameter %q; %s", c.Name, name, listParameters(names))
		case len(value) > maxValue:
			return agent.Fail(forge.FailConfig, "the value of %s is %d bytes long; at most %d are allowed", name, len(value), maxValue)
		// process.Merge would drop such a variable.
		case strings.ContainsRune(value, 0):
			return agent.Fail(forge.FailConfig, "the value of %s contains a NUL character", name)
		}
	}
	return nil
}

// listParameters lists the names, for an error message.
func listParameters(names []string) string {
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

// missingParams returns a question for each parameter that has neither a value nor a
// default.
func (r *invocation) missingParams() []agent.Question {
	var out []agent.Question
	for _, p := range r.recipe.Params {
		if _, ok := r.call.Recipe.With[p.Name]; ok || p.Default != nil {
			continue
		}
		q := agent.Question{Question: p.Question, Context: p.Context, Suggested: p.Suggested, Param: p.Name}
		if q.Question == "" {
			q.Question = fmt.Sprintf("Which value for %s?", p.Name)
		}
		out = append(out, q)
	}
	return out
}

// environment returns the variables of the recipe's commands: parameters, then those of
// the call, then FORGE_ variables, later ones overriding earlier ones.
func (r *invocation) environment() ([]string, error) {
	c := r.call.Recipe
	feedback := filepath.Join(r.call.ScratchDir, "feedback.txt")
	if err := writeFeedback(feedback, c.Feedback); err != nil {
		return nil, agent.Fail(forge.FailRepository, "the feedback cannot be written: %v", err)
	}
	var params []string
	for _, p := range r.recipe.Params {
		if v, ok := c.With[p.Name]; ok {
			params = append(params, p.Name+"="+v)
		} else if p.Default != nil {
			params = append(params, p.Name+"="+*p.Default)
		}
	}
	own := []string{
		"FORGE_INTENT=" + string(c.Intent),
		"FORGE_TASK=" + string(c.TaskID),
		"FORGE_ITEM=" + c.Item,
		"FORGE_ATTEMPT=" + strconv.Itoa(max(c.Attempt, 1)),
		"FORGE_FEEDBACK=" + feedback,
	}
	// Neither a parameter nor the call can change the FORGE_ variables.
	return process.Merge(process.Merge(params, r.call.Env), own), nil
}

// writeFeedback writes the file that FORGE_FEEDBACK names. It is empty on a first
// attempt, so that a command can always read it.
func writeFeedback(path, feedback string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(feedback), 0o600)
}
