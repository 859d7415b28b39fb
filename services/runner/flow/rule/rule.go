// Package rule names the rules that adjust a flow, as the history has them, and has
// the table of consequences for each reason of a failure. Every rule is explained to people in
// one line, and shown by a script in testdata/scripts; tests see to both.
package rule

// The rules that adjust a flow.
const (
	Clarify         = "clarify"          // analysis asked: a person answers, then the same session goes on
	Architect       = "architect"        // the analysis was not sufficient: a deeper look
	Split           = "split"            // taken apart into intents of their own
	Pause           = "pause"            // by a person; agents stop, and what they did is kept
	Resume          = "resume"           // by a person: what was paused goes on
	Proposed        = "proposed"         // reflection proposed an intent
	NotProposed     = "not-proposed"     // reflection proposed a known intent, or more than it may
	Overlap         = "overlap"          // two tasks under way do not merge: both are told
	AwaitApproval   = "await-approval"   // risk above low, or an origin that is not trusted
	AwaitDependency = "await-dependency" // implementation waits for other intents
	BlockDependency = "block-dependency" // an intent that this one depends on did not get done
	Cycle           = "dependency-cycle"
	EmptyAttempt    = "empty-attempt"   // nothing was committed: once more, saying so
	Rework          = "rework"          // review rejected: the same session, with the feedback
	VerifyFailed    = "verify-failed"   // as a rejection, with the command's output
	Reimplement     = "reimplement"     // conflict: fresh checkout, same plan, with a file lock
	Escalate        = "escalate"        // conflict although it had the file lock: a person
	ReviewAgain     = "review-again"    // rebasing changed the patch
	MergedLate      = "merged-late"     // a merge that was given up turned out to have been made
	Protected       = "protected-paths" // approved by review, and a person has to look as well
	Approved        = "approved"        // by a person
	Dirty           = "wait-for-files"  // a person's uncommitted changes are in the way
	RetryAgent      = "retry-agent"     // an agent's error: once more after a pause
	Park            = "park"            // a limit with a known reset: wait for it, spending no retry
	FreshSession    = "new-session"     // the session is lost: a new one
	Fallback        = "fallback"        // an agent is at its limit: another one, in a new session
	MoreMoney       = "more-money"      // a call used up what was set aside for it: the same session goes on with more
	Budget          = "wait-for-budget"
	Interrupted     = "interrupted" // its service ended: the same session goes on in the next one
	Reclaim         = "reclaim"     // its own replica did not take the work: any replica
	FailDependents  = "fail-dependents"
	TaskFailed      = "task-failed"
	NextIteration   = "next-iteration" // a criterion is not met yet: another iteration towards the goal
	MaxIterations   = "max-iterations" // the goal has had all its iterations
	PlainSummary    = "plain-summary"  // an iteration could not be summed up: its own report stands in
)
