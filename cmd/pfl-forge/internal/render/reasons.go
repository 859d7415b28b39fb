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
	goesOn = "tries again after a pause, in the same session and checkout"
	inbox  = "waits in the inbox"
)

// Reasons lists every reason there is.
func Reasons() []Reason { return reasons }

// reasons is in the order of forge's constants.
var reasons = []Reason{
	{
		forge.FailTimeout, "it exceeded its time limit",
		goesOn,
		"raise the step's entry of timeouts in pfl-forge.yaml, or make the task smaller, then retry",
	},
	{
		forge.FailIdle, "it printed nothing for too long",
		goesOn,
		"look at the end of its transcript (pfl-forge logs); raise timeouts.idle if it was still working, then retry",
	},
	{
		forge.FailOutputLimit, "it exceeded its output limit",
		goesOn,
		"make the command print less, or the agent's task smaller, then retry",
	},
	{
		forge.FailDiskLimit, "it wrote more to the disk than it may",
		goesOn,
		"make the command write less, or make room on the worker's disk, then retry",
	},
	{
		forge.FailCrashed, "it failed",
		goesOn,
		"see pfl-forge logs for the cause, fix it, then retry",
	},
	{
		forge.FailInvalidOutput, "its answer did not have the required form, even after one correction",
		goesOn,
		"retry, with instructions or with another model",
	},
	{
		forge.FailAuth, "the model provider does not accept the credentials",
		"holds all calls of that account in the project, and asks once, for all of them; uses no retry",
		"renew the key or the login of the worker (one in its environment needs a restart), then pfl-forge resume --all",
	},
	{
		forge.FailRateLimited, "too many requests for now",
		"waits until requests are accepted again; uses no retry",
		"wait, lower parallel_workers, or add a fallback agent",
	},
	{
		forge.FailQuota, "the account's quota is used up",
		"switches to a fallback agent, or waits for the reset; uses no retry",
		"wait for the reset, raise the quota, or add a fallback agent; then retry",
	},
	{
		forge.FailOverloaded, "the model is overloaded",
		"tries again after a longer pause",
		"retry later",
	},
	{
		forge.FailRefused, "the model refused",
		inbox,
		"rephrase it: retry --with 'instructions', or cancel",
	},
	{
		forge.FailMaxTurns, "it reached its limit of turns",
		"tries once more after a pause, in the same session and checkout; then waits in the inbox",
		"raise calls.max_turns in pfl-forge.yaml, make the task smaller, or narrow it: retry --with 'instructions'",
	},
	{
		forge.FailBudget, "it would exceed its budget",
		"continues while there is budget left, then waits in the inbox",
		"raise the budget: retry --budget USD, or budget in pfl-forge.yaml; the work so far is kept",
	},
	{
		forge.FailLostSession, "the agent's session is gone",
		"starts a new session with a summary of the last one",
		"retry",
	},
	{
		forge.FailMissingCLI, "the agent's program is not installed where the worker runs",
		inbox,
		"install it, or choose another agent in pfl-forge.yaml, then retry; pfl-forge doctor lists what is installed",
	},
	{
		forge.FailCLITooOld, "the agent's program is too old",
		inbox,
		"update it, then retry; pfl-forge doctor says which version is needed",
	},
	{
		forge.FailSandbox, "this machine has no sandbox for what an agent or another system wrote, or for what requires one",
		inbox,
		"allow one (pfl-forge doctor says what is missing), run the worker where there is one, or on Kubernetes with --pod-template; " +
			"to run it unconfined on your own machine, FORGE_SANDBOX=unconfined",
	},
	{
		forge.FailPromptTooLong, "the session is too long for the model",
		"starts a new session with a summary of the last one",
		"make the task smaller, or choose a model with more context, then retry",
	},
	{
		forge.FailKilled, "something outside pfl-forge stopped it",
		goesOn,
		"retry",
	},
	{
		forge.FailInterrupted, "its service stopped while it was working",
		"continues at once, in the same session and checkout; does not count as an attempt",
		"nothing",
	},
	{
		forge.FailUnsafe, "its change touches files that it must not change",
		again,
		"look at the change; retry --with 'instructions' to avoid those files, or cancel",
	},
	{
		forge.FailConfig, "pfl-forge.yaml or the recipe is wrong",
		inbox,
		"fix it on the base branch, commit, then retry",
	},
	{
		forge.FailRepository, "git or the file system reported an error",
		"tries again after 30 seconds, and after a minute more, in the same session and checkout",
		"fix what the message names (the origin, its credentials, the disk), then retry",
	},
	{
		forge.FailLost, "the pod in which it ran is gone",
		"tries again after 30 seconds, and after a minute more, in the same session and checkout",
		"see why the pod ended (kubectl get events), give pods more room if they need it, then retry",
	},
	{
		forge.FailHeld, "nothing was done: the agent's account is known to refuse calls, or the git origin not to answer",
		"waits with all that need the same, until the quota is reset, a person resumes it, or the origin answers; uses no retry",
		"fix the key, the login or the quota, then pfl-forge resume --all; for the origin, nothing",
	},
	{
		forge.FailOrigin, "the git origin does not answer, refuses the credentials, or keeps nothing that is pushed below refs/forge",
		"the whole project waits, and continues within seconds of the origin's return; uses no retry",
		"nothing, or bring the origin back; for credentials, give the workers new ones",
	},
	{
		forge.FailPush, "a hook of the git origin, or the protection of the branch, refused the push of this change, and accepted another one",
		"does not try again: the origin refuses this change alone",
		"read what the origin said, then pfl-forge retry <intent> --with 'what to change', or fix the hook and retry",
	},
	{
		forge.FailBase, "the base branch fails its own verify commands",
		"everything that would be verified waits, and continues when the base branch passes; uses no retry",
		"fix the base branch",
	},
	{
		forge.FailReplica, "nothing was done: no replica could do it, each for a reason of its own, such as a missing program or a sandbox that cannot be made",
		"waits with the workers until one can do it, at most a minute longer; continues by itself, and uses no retry",
		"fix what the message names where the workers run; their /readyz and pfl-forge doctor say more",
	},
	{
		forge.FailUnwell, "its replica could do no more work, such as for want of space, after something had been paid",
		"continues at once, at another replica if there is one, in the same session; the third time in a row the task is paused, in the inbox; uses no retry",
		"see what the message names where the workers run, and whether the task itself uses it up; then resume",
	},
	{
		forge.FailKilledReplica, "its replica was killed while it worked on it, and so were those that continued it, three times in a row",
		"continues at once, in the same session, where it was killed; the third time in a row the task is paused, in the inbox; uses no retry",
		"see why they were killed (kubectl describe pod says OOMKilled for want of memory): give them more, or make the task smaller; then resume",
	},
	{
		forge.FailUnreserved, "no money was reserved for the call: a budget was set after its intent read the policy",
		"reserves it by the policy that the worker reported, and makes the call",
		"nothing; if it keeps happening, a worker reads a different pfl-forge.yaml than the others: see its logs",
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
