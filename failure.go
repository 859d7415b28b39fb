package forge

import "time"

// FailureReason names why an attempt did not do its job: a closed set, because
// each has its own rule in flow.
type FailureReason string

// The reasons.
const (
	FailTimeout       FailureReason = "timeout"        // wall clock
	FailIdle          FailureReason = "idle"           // no output for too long
	FailOutputLimit   FailureReason = "output_limit"   // it exceeded its output limit
	FailCrashed       FailureReason = "crashed"        // exit status, signal, or a panic of the worker
	FailInvalidOutput FailureReason = "invalid_output" // the answer is not what the schema says
	FailAuth          FailureReason = "auth"
	FailRateLimited   FailureReason = "rate_limited" // Until says when it is worth trying again
	FailQuota         FailureReason = "quota"        // Until says when it is reset
	FailOverloaded    FailureReason = "overloaded"
	FailRefused       FailureReason = "refused" // the model declined
	FailMaxTurns      FailureReason = "max_turns"
	FailBudget        FailureReason = "budget"
	FailLostSession   FailureReason = "lost_session"
	FailMissingCLI    FailureReason = "missing_cli"
	FailCLITooOld     FailureReason = "cli_too_old"
	FailSandbox       FailureReason = "sandbox" // demanded, and not to be had here
	FailPromptTooLong FailureReason = "prompt_too_long"
	FailKilled        FailureReason = "killed"
	FailInterrupted   FailureReason = "interrupted" // its service ended
	FailUnsafe        FailureReason = "unsafe"      // the change reaches out of its tree, or into what agents may not touch
	FailConfig        FailureReason = "config"      // pfl-forge.yaml or the recipe is at fault: a person has to mend it
	FailRepository    FailureReason = "repository"  // git or the disk reported an error
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
