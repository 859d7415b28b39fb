package render

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Reason explains why an attempt failed. The guide has the same table.
type Reason struct {
	Name    forge.FailureReason
	Meaning string // what happened
	Then    string // what pfl-forge does by itself
	Do      string // what a person can do, once it has given up
}

const (
	again  = "tries again after a pause"
	goesOn = "tries again after a pause, in the same session and tree"
	inbox  = "waits in the inbox"
)

// Reasons lists every reason there is.
func Reasons() []Reason { return reasons }

// reasons is in the order of forge's constants.
var reasons = []Reason{
	{
		forge.FailTimeout, "it ran longer than it may",
		goesOn,
		"raise the step's entry of timeouts in pfl-forge.yaml, or make the task smaller, then retry",
	},
	{
		forge.FailIdle, "it printed nothing for too long",
		goesOn,
		"look at the end of its transcript (pfl-forge logs); raise timeouts.idle if it was at work, then retry",
	},
	{
		forge.FailOutputLimit, "it printed more than it may",
		goesOn,
		"make the command or the agent's task less talkative, then retry",
	},
	{
		forge.FailCrashed, "it ended with an error",
		goesOn,
		"look at its transcript (pfl-forge logs); mend what it stumbled over, then retry",
	},
	{
		forge.FailInvalidOutput, "its answer is not what was asked for, also after one correction",
		goesOn,
		"retry, with instructions or with another model",
	},
	{
		forge.FailAuth, "the model provider does not accept the credentials",
		inbox,
		"renew the key or the login in the environment of the worker, start it again, then retry",
	},
	{
		forge.FailRateLimited, "too many requests for now",
		"waits until it is let in again; spends no retry",
		"wait, lower parallel_workers, or add a fallback agent",
	},
	{
		forge.FailQuota, "the account's quota is used up",
		"turns to a fallback agent, or waits for the reset; spends no retry",
		"wait for the reset, raise the quota, or add a fallback agent; then retry",
	},
	{
		forge.FailOverloaded, "the model is overloaded",
		"tries again after a longer pause",
		"retry later",
	},
	{
		forge.FailRefused, "the model declined to do it",
		inbox,
		"say it otherwise: retry --with 'instructions', or cancel",
	},
	{
		forge.FailMaxTurns, "it took more turns than it may",
		goesOn,
		"make the task smaller, or retry --with 'instructions' to go straight to it",
	},
	{
		forge.FailBudget, "it would cost more than its budget",
		"goes on while more may be spent, then waits in the inbox",
		"raise the budget: retry --budget USD, or budget in pfl-forge.yaml; what was done is kept",
	},
	{
		forge.FailLostSession, "the agent's conversation is gone",
		"begins a new one, told of what was before",
		"retry",
	},
	{
		forge.FailMissingCLI, "the agent's program is not installed where the worker runs",
		inbox,
		"install it, or choose another agent in pfl-forge.yaml, then retry; pfl-forge doctor tells what is there",
	},
	{
		forge.FailCLITooOld, "the agent's program is too old",
		inbox,
		"update it, then retry; pfl-forge doctor tells what is needed",
	},
	{
		forge.FailSandbox, "a sandbox is demanded and cannot be had on this machine",
		inbox,
		"run the worker where there is one, or set policy.sandbox to auto; pfl-forge doctor tells what is missing",
	},
	{
		forge.FailPromptTooLong, "the conversation does not fit into the model",
		"begins a new one, told of what was before",
		"make the task smaller, or choose a model with more context, then retry",
	},
	{
		forge.FailKilled, "it was stopped from outside",
		goesOn,
		"retry",
	},
	{
		forge.FailInterrupted, "its service ended while it worked",
		"goes on at once, in the same session and tree; it counts for nothing",
		"nothing",
	},
	{
		forge.FailUnsafe, "its change reaches out of its tree, or into what it may not touch",
		again,
		"look at the change; retry --with 'instructions' to stay clear of that, or cancel",
	},
	{
		forge.FailConfig, "pfl-forge.yaml or the recipe is wrong",
		inbox,
		"mend it on the base branch and commit, then retry",
	},
	{
		forge.FailRepository, "git or the disk said no",
		goesOn,
		"mend what the message says: the origin, its credentials, the disk; then retry",
	},
}

// ReasonOf finds the reason that a text about a failure begins with, after the task and
// the step, if they are named: "implement: timeout: ...".
func ReasonOf(text string) (Reason, bool) {
	const most = 3 // task, step, reason
	for i, part := range strings.SplitN(text, ": ", most+1) {
		if i == most {
			break
		}
		for _, r := range reasons {
			if part == string(r.Name) {
				return r, true
			}
		}
	}
	return Reason{}, false
}
