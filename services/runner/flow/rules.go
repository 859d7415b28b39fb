package flow

// The rules that adjust a flow, as the history names them.
const (
	ruleClarify         = "clarify"          // analysis asked: a person answers, then the same session goes on
	ruleArchitect       = "architect"        // the analysis was not sufficient: a deeper look
	ruleSplit           = "split"            // taken apart into intents of their own
	rulePause           = "pause"            // by a person; agents stop, and what they did is kept
	ruleResume          = "resume"           // by a person: what was paused goes on
	ruleProposed        = "proposed"         // reflection proposed an intent
	ruleNotProposed     = "not-proposed"     // reflection proposed what is known, or more than it may
	ruleOverlap         = "overlap"          // two tasks under way do not merge: both are told
	ruleAwaitApproval   = "await-approval"   // risk above low, or an origin that is not trusted
	ruleAwaitDependency = "await-dependency" // implementation waits for other intents
	ruleBlockDependency = "block-dependency" // an intent that this one depends on did not get done
	ruleCycle           = "dependency-cycle"
	ruleEmptyAttempt    = "empty-attempt"   // nothing was committed: once more, saying so
	ruleRework          = "rework"          // review rejected: the same session, with the feedback
	ruleVerifyFailed    = "verify-failed"   // as a rejection, with the command's output
	ruleReimplement     = "reimplement"     // conflict: fresh checkout, same plan, with precedence
	ruleEscalate        = "escalate"        // conflict in spite of precedence: a person
	ruleReviewAgain     = "review-again"    // rebasing changed the patch
	ruleLandedLate      = "landed-late"     // a landing that was given up turned out to have been made
	ruleProtected       = "protected-paths" // approved by review, and a person has to look as well
	ruleApproved        = "approved"        // by a person
	ruleDirty           = "wait-for-files"  // a person's uncommitted changes are in the way
	ruleRetryAgent      = "retry-agent"     // an agent's error: once more after a pause
	rulePark            = "park"            // a limit with a known reset: wait for it, spending no retry
	ruleNewSession      = "new-session"     // the session is lost: a new one
	ruleFallback        = "fallback"        // an agent is at its limit: another one, in a new session
	ruleMoreMoney       = "more-money"      // a call used up what was set aside for it: the same session goes on with more
	ruleBudget          = "wait-for-budget"
	ruleInterrupted     = "interrupted" // its service ended: the same session goes on in the next one
	ruleReclaim         = "reclaim"     // its own replica did not take the work: any replica
	ruleFailDependents  = "fail-dependents"
	ruleTaskFailed      = "task-failed"
	ruleNextIteration   = "next-iteration" // a criterion is not met yet: another iteration towards the goal
	ruleMaxIterations   = "max-iterations" // the goal has had all its iterations
	rulePlainSummary    = "plain-summary"  // an iteration could not be summed up: its own report stands in
)

// maxLandings bounds how often a task is reviewed again because the base branch
// moved under it: then somebody outside pushes faster than we can land.
const maxLandings = 10

// maxParallel bounds how many tasks of one intent are under way, so that a wide
// fan-out leaves room for others and its decisions stay small enough to record.
const maxParallel = 16

// reflectAttempts bounds the attempts at one reflection; nothing hangs on it.
const reflectAttempts = 2
