// Package recipe is the agent that needs no model: it runs the deterministic
// recipes that a repository defines in pfl-forge.yaml. An intent names a recipe
// and gives values; it never carries a command.
package recipe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
)

// Agent runs recipes.
type Agent struct {
	owner process.Owner
}

// New returns the recipe agent of a service.
func New(owner process.Owner) *Agent { return &Agent{owner: owner} }

// Name returns "recipe".
func (a *Agent) Name() string { return config.AgentRecipe }

// Run analyzes, implements or reviews as the recipe of call.Recipe says.
//
//   - analyze turns parameters without a value into clarifications, and a
//     recipe into tasks: one, one per line of each, or the named ones;
//   - implement runs the command in the checkout; a non-zero exit is a failure
//     with the end of its output;
//   - review runs the check: exit 0 approves, otherwise its output is the issue.
func (a *Agent) Run(ctx context.Context, call agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
	started := time.Now()
	if sink == nil {
		sink = func(agent.Event) {}
	}
	r, err := resolve(call.Recipe)
	if err != nil {
		return agent.Outcome{}, err
	}
	run := invocation{agent: a, call: call, recipe: r, sink: sink}
	var answer any
	var text string
	switch call.Role {
	case agent.RoleAnalyze:
		answer, err = run.analyze(ctx)
	case agent.RoleImplement:
		answer, text, err = run.implement(ctx)
	case agent.RoleReview:
		answer, text, err = run.review(ctx)
	default:
		err = agent.Fail(forge.FailConfig, "a recipe cannot %s", call.Role)
	}
	out := agent.Outcome{
		Text: text, Session: call.Session.ID, Duration: time.Since(started), Usage: forge.Usage{Calls: 1},
	}
	if err != nil {
		return out, err
	}
	if out.Answer, err = json.Marshal(answer); err != nil {
		return out, agent.Fail(forge.FailInvalidOutput, "%v", err)
	}
	return out, nil
}

// run is one call.
type invocation struct {
	agent  *Agent
	call   agent.Call
	recipe config.Recipe
	sink   func(agent.Event)
}

// resolve finds the recipe, and refuses values that it has no parameter for.
func resolve(c *agent.RecipeCall) (config.Recipe, error) {
	switch {
	case c == nil || c.Project == nil:
		return config.Recipe{}, agent.Fail(forge.FailConfig, "the call names no recipe")
	case c.Name == "":
		return config.Recipe{}, agent.Fail(forge.FailConfig, "the intent names no recipe; %s", knownRecipes(c.Project))
	}
	r, ok := c.Project.Recipes[c.Name]
	if !ok {
		hint := ""
		if best := c.Project.ClosestRecipe(c.Name); best != "" {
			hint = fmt.Sprintf("did you mean %q? ", best)
		}
		return r, agent.Fail(forge.FailConfig, "%s has no recipe %q; %s%s", config.FileName, c.Name, hint, knownRecipes(c.Project))
	}
	return r, checkValues(c, r)
}

func knownRecipes(p *config.Project) string {
	names := p.RecipeNames()
	if len(names) == 0 {
		return config.FileName + " defines none; add one there"
	}
	return "known are " + strings.Join(names, ", ")
}

// shell runs one of the recipe's commands.
func (r *invocation) shell(ctx context.Context, command string, stdout func([]byte)) (agent.ShellResult, error) {
	env, err := r.environment()
	if err != nil {
		return agent.ShellResult{}, err
	}
	limits := r.call.Limits
	if r.recipe.Timeout > 0 {
		limits.Wall = r.recipe.Timeout
	}
	return agent.RunShell(ctx, agent.Shell{
		Command: command, Dir: r.call.Dir, ScratchDir: r.call.ScratchDir, Owner: r.agent.owner,
		Env: env, Limits: limits, Sandbox: r.call.Sandbox, Sink: r.sink, Stdout: stdout,
	})
}
