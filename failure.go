package forge

import "time"

// FailureReason names why an attempt did not do its job: a closed set, because
// each has its own rule in flow.
type FailureReason string

// The reasons.
const (
	// FailTimeout: the attempt exceeded its time limit.
	FailTimeout FailureReason = "timeout"
	// FailIdle: the agent printed nothing for too long.
	FailIdle FailureReason = "idle"
	// FailOutputLimit: the agent printed more than its limit.
	FailOutputLimit FailureReason = "output_limit"
	// FailCrashed: the program ended with an exit status or by a signal that
	// says nothing else, or the worker panicked.
	FailCrashed FailureReason = "crashed"
	// FailInvalidOutput: the answer is missing or not of the role's schema,
	// also after it was asked for once more.
	FailInvalidOutput FailureReason = "invalid_output"
	// FailAuth: the provider refused the credentials.
	FailAuth FailureReason = "auth"
	// FailRateLimited: the provider takes no more requests for now.
	// Failure.Until says when it does, as far as that is known.
	FailRateLimited FailureReason = "rate_limited"
	// FailQuota: the account's quota is used up. Failure.Until says when it is
	// reset.
	FailQuota FailureReason = "quota"
	// FailOverloaded: the model is overloaded or cannot be reached.
	FailOverloaded FailureReason = "overloaded"
	// FailRefused: the model declined the request.
	FailRefused FailureReason = "refused"
	// FailMaxTurns: the agent reached its limit of turns.
	FailMaxTurns FailureReason = "max_turns"
	// FailBudget: the call used up the money that was reserved for it.
	FailBudget FailureReason = "budget"
	// FailLostSession: the session that was to be resumed does not exist any
	// more.
	FailLostSession FailureReason = "lost_session"
	// FailMissingCLI: the agent's program is not installed where the worker
	// runs.
	FailMissingCLI FailureReason = "missing_cli"
	// FailCLITooOld: the agent's program is older than the back end needs.
	FailCLITooOld FailureReason = "cli_too_old"
	// FailSandbox: the project demands a sandbox, and this machine offers none.
	FailSandbox FailureReason = "sandbox"
	// FailPromptTooLong: the prompt, or the session with it, is too long for
	// the model.
	FailPromptTooLong FailureReason = "prompt_too_long"
	// FailKilled: the attempt was cancelled, or its program was stopped from
	// outside.
	FailKilled FailureReason = "killed"
	// FailInterrupted: the worker's service ended while the attempt went on.
	// Its work is kept, and the attempt counts for nothing.
	FailInterrupted FailureReason = "interrupted"
	// FailUnsafe: the change reaches out of its tree, or into files that agents
	// may not touch.
	FailUnsafe FailureReason = "unsafe"
	// FailConfig: pfl-forge.yaml, the recipe or the request is at fault; a
	// person has to mend it.
	FailConfig FailureReason = "config"
	// FailRepository: git or the disk reported an error.
	FailRepository FailureReason = "repository"
)

// Failure says why an attempt did not do its job.
type Failure struct {
	// Reason is one of the closed set of reasons. It decides what follows.
	Reason FailureReason
	// Message says what happened and what to do next, for a person.
	Message string
	// Until is when it is worth trying again, for rate_limited and quota; zero if
	// that is not known.
	Until time.Time
}
