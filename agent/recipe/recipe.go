// Package recipe is the back end without a model: it runs the deterministic recipes
// that a repository defines in pfl-forge.yaml. An intent names a recipe and gives
// values for its parameters; it never carries a command.
//
// A recipe goes through the same steps as a change by a model:
//
//   - analyze (analyze.go) asks for missing parameters and makes tasks;
//   - implement (work.go) runs the command in the checkout;
//   - review (work.go) runs the check.
//
// The values reach the commands as environment variables (values.go), never as part of
// a command line.
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
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// Agent runs recipes. It is safe for concurrent use.
type Agent struct {
	owner process.Owner
}

// New returns the recipe back end of a service.
func New(owner process.Owner) *Agent { return &Agent{owner: owner} }

// Name returns "recipe".
func (a *Agent) Name() string { return config.AgentRecipe }

// Run makes one call for the recipe that call.Recipe names. Its answer is that of the
// role:
//
//   - analyze answers with clarifications for parameters without a value; otherwise with
//     tasks: a single one, one per line that each prints, or the recipe's named ones;
//   - implement runs the command; a non-zero exit is a FailCrashed with the end of the
//     output;
//   - review runs the check: exit 0 approves, otherwise the end of the output is the
//     issue. A recipe without a check approves.
//
// Any other role fails as FailConfig. sink receives the lines of the commands' output.
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

// invocation is one call of a recipe.
type invocation struct {
	// agent runs the commands on behalf of its service.
	agent *Agent
	call  agent.Call
	// recipe is the one that call.Recipe names.
	recipe config.Recipe
	// sink is never nil.
	sink func(agent.Event)
}

// resolve returns the recipe that a call names. It refuses an unknown recipe, and
// values without a parameter.
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
		// A misspelled name is the likeliest mistake.
		if best := c.Project.ClosestRecipe(c.Name); best != "" {
			hint = fmt.Sprintf("did you mean %q? ", best)
		}
		return r, agent.Fail(forge.FailConfig, "%s has no recipe %q; %s%s", config.FileName, c.Name, hint, knownRecipes(c.Project))
	}
	return r, checkValues(c, r)
}

// knownRecipes lists the project's recipes, for an error message.
func knownRecipes(p *config.Project) string {
	names := p.RecipeNames()
	if len(names) == 0 {
		return config.FileName + " defines none; add one there"
	}
	return "known are " + strings.Join(names, ", ")
}

// shell runs one of the recipe's commands. stdout receives its lines unchanged; it may
// be nil.
func (r *invocation) shell(ctx context.Context, what telemetry.Command, command string, stdout func([]byte)) (agent.ShellResult, error) {
	env, err := r.environment()
	if err != nil {
		return agent.ShellResult{}, err
	}
	limits := r.call.Limits
	// A recipe's own timeout replaces the limit of the step.
	if r.recipe.Timeout > 0 {
		limits.Wall = r.recipe.Timeout
	}
	return agent.RunShell(ctx, agent.Shell{
		Command: command, For: what, Dir: r.call.Dir, ScratchDir: r.call.ScratchDir, Owner: r.agent.owner,
		Env: env, Limits: limits, Sandbox: r.call.Sandbox, Sink: r.sink, Stdout: stdout,
	})
}
