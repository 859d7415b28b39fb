package forge

import "time"

// FailureReason names why an attempt did not do its job: a closed set, because
// each has its own rule in flow.
type FailureReason string

// The reasons.
const (
	FailTimeout       FailureReason = "timeout"         // the attempt exceeded its time limit
	FailIdle          FailureReason = "idle"            // the agent printed nothing for too long
	FailOutputLimit   FailureReason = "output_limit"    // the agent or command printed more than its limit
	FailDiskLimit     FailureReason = "disk_limit"      // a command wrote more to the disk than it may
	FailCrashed       FailureReason = "crashed"         // the program ended with an exit status or by a signal that says nothing else, or the worker panicked
	FailInvalidOutput FailureReason = "invalid_output"  // the answer is missing or not of the role's schema, also after it was asked for once more
	FailAuth          FailureReason = "auth"            // the provider refused the credentials
	FailRateLimited   FailureReason = "rate_limited"    // the provider takes no more requests for now: until Failure.Until, as far as that is known
	FailQuota         FailureReason = "quota"           // the account's quota is used up, until Failure.Until
	FailOverloaded    FailureReason = "overloaded"      // the model is overloaded or cannot be reached
	FailRefused       FailureReason = "refused"         // the model declined the request
	FailMaxTurns      FailureReason = "max_turns"       // the agent reached its limit of turns
	FailBudget        FailureReason = "budget"          // the call used up the money that was reserved for it
	FailLostSession   FailureReason = "lost_session"    // the session that was to be resumed does not exist any more
	FailMissingCLI    FailureReason = "missing_cli"     // the agent's program is not installed where the worker runs
	FailCLITooOld     FailureReason = "cli_too_old"     // the agent's program is older than the back end needs
	FailSandbox       FailureReason = "sandbox"         // the project demands a sandbox, and this machine offers none
	FailPromptTooLong FailureReason = "prompt_too_long" // the prompt, or the session with it, is too long for the model
	FailKilled        FailureReason = "killed"          // the attempt was cancelled, or its program was stopped from outside
	FailInterrupted   FailureReason = "interrupted"     // the worker's service ended meanwhile. The work is kept, and the attempt counts for nothing
	FailUnsafe        FailureReason = "unsafe"          // the change reaches out of its tree, or into files that agents may not touch
	FailConfig        FailureReason = "config"          // pfl-forge.yaml, the recipe or the request is at fault; a person has to mend it
	FailRepository    FailureReason = "repository"      // git or the file system reported an error
	FailLost          FailureReason = "lost"            // the pod in which the command ran is gone. What it did is not known
	FailHeld          FailureReason = "held"            // nothing was done: the agent's account is known to refuse calls, or the origin not to answer
	FailOrigin        FailureReason = "origin"          // the server of the origin does not answer. Every step of the project waits for it
	FailPush          FailureReason = "push_refused"    // a hook of the origin, or the protection of the branch, refused the push of a change
	FailBase          FailureReason = "base_red"        // the base branch fails its own verify commands; of no attempt, but of the project
	FailReplica       FailureReason = "replica"         // nothing was done: no replica could, each for a reason of its own
	FailUnwell        FailureReason = "unwell"          // its replica could do no more work, such as for want of space. What it did is kept, and was paid
	FailKilledReplica FailureReason = "killed_replica"  // replicas were killed while they worked on it, one after the other. What they did is kept, and was paid
	FailUnreserved    FailureReason = "unreserved"      // no agent was called: a budget was set meanwhile, and nothing is reserved; the result has the policy
)

// Failure says why an attempt did not do its job.
type Failure struct {
	// Reason is one of the closed set of reasons. It decides what follows.
	Reason FailureReason
	// Message says what happened and what to do next, for a person.
	Message string
	// Until is when it is worth trying again, for rate_limited and quota; zero
	// if that is not known.
	Until time.Time
}
