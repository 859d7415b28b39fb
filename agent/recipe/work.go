package recipe

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// implement runs the command of the call's task. If that changes nothing and the check passes
// all the same, the answer says that no change was needed.
func (r *invocation) implement(ctx context.Context) (agent.Implementation, string, error) {
	command, check, err := r.commands()
	if err != nil {
		return agent.Implementation{}, "", err
	}
	res, err := r.shell(ctx, telemetry.CommandRun, command, nil)
	if err != nil {
		return agent.Implementation{}, res.Output, err
	}
	if !res.OK() {
		return agent.Implementation{}, res.Output, agent.Fail(forge.FailCrashed, "%s", exitMessage(command, res))
	}
	answer := agent.Implementation{Summary: "Ran recipe " + r.call.Recipe.Name + ": " + term.Line(command)}
	answer.NotNeeded, err = r.notNeeded(ctx, check)
	return answer, res.Output, err
}

// notNeeded reports whether the checkout has no change and passes the check. Without a check
// nothing tells that the repository is as the recipe wants it.
func (r *invocation) notNeeded(ctx context.Context, check string) (bool, error) {
	if check == "" || r.call.Changed == nil || r.call.Changed(ctx) {
		return false, nil
	}
	res, err := r.shell(ctx, telemetry.CommandCheck, check, nil)
	return err == nil && res.OK(), err
}

// review runs the check of the call's task.
func (r *invocation) review(ctx context.Context) (agent.Review, string, error) {
	approved := agent.Review{Verdict: string(forge.VerdictApproved), Issues: []string{}}
	_, check, err := r.commands()
	// Without a check the verify commands of the project decide alone.
	if err != nil || check == "" {
		return approved, "", err
	}
	res, err := r.shell(ctx, telemetry.CommandCheck, check, nil)
	if err != nil {
		return agent.Review{}, res.Output, err
	}
	if res.OK() {
		return approved, res.Output, nil
	}
	return agent.Review{
		Verdict: string(forge.VerdictRejected),
		Issues:  []string{exitMessage(check, res)},
	}, res.Output, nil
}

// commands returns the command and the check of the call's task. A task can be missing
// if the configuration changed after the analysis.
func (r *invocation) commands() (command, check string, err error) {
	c := r.call.Recipe
	if len(r.recipe.Tasks) == 0 {
		return r.recipe.Run, r.recipe.Check, nil
	}
	t, ok := r.recipe.Task(c.Task)
	if !ok {
		return "", "", agent.Fail(forge.FailConfig,
			"recipe %q has no task %q any more; retry the intent to analyze it again", c.Name, c.Task)
	}
	return t.Run, r.taskCheck(t.Check), nil
}

// taskCheck returns own, a task's check, or else the recipe's.
func (r *invocation) taskCheck(own string) string {
	if own != "" {
		return own
	}
	return r.recipe.Check
}

// maxTail bounds the part of an output that is used as feedback, in bytes.
const maxTail = 8 << 10

// exitMessage describes a failed command, with the end of its output.
func exitMessage(command string, res agent.ShellResult) string {
	how := fmt.Sprintf("%q exited with status %d", term.Short(command, 120), res.ExitCode)
	if res.ExitCode > 128 {
		how = fmt.Sprintf("%q was ended by signal %d", term.Short(command, 120), res.ExitCode-128)
	}
	output := strings.TrimSpace(res.Output)
	if output == "" {
		return how + " and printed nothing"
	}
	if len(output) > maxTail {
		output = "..." + strings.ToValidUTF8(output[len(output)-maxTail:], "")
	}
	return how + ":\n" + output
}
