// Package rule names the rules that adjust a flow, as the history has them (rule.go), and has
// the table of consequences for each reason of a failure (failure.go). Every rule is explained
// to people in one line, and shown by a script in testdata/scripts; tests see to both.
//
// Besides, all small machines use from it: the verdict that claims make
// (claim.go), the stamp of an event and how a machine ignores or refuses one
// (stamp.go), and texts cut to their bounds (text.go).
package rule

// The rules that adjust a flow.
const (
	// Clarify: the analysis asked; a person answers, and the same session goes
	// on with the answers.
	Clarify = "clarify"
	// Blocked: the agent cannot go on; a person is asked, and the same session goes
	// on with the answer.
	Blocked = "blocked"
	// NothingToDo: a review of the base agrees that it meets the task already, which
	// is done without a commit.
	NothingToDo = "nothing-to-do"
	// Architect: the analysis was not sufficient; an architect takes a deeper
	// look.
	Architect = "architect"
	// Split: the analysis found intents in the intent; they become its
	// children.
	Split = "split"
	// Joined: the analysis planned several tasks; they become one, since the intent is
	// merged as one change.
	Joined = "joined"
	// Pause: a person paused it. Agents stop, and their work is kept.
	Pause = "pause"
	// Resume: a person resumed it. Paused work goes on where it stopped.
	Resume = "resume"
	// Proposed: a reflection proposed an intent.
	Proposed = "proposed"
	// NotProposed: a reflection proposed a known intent, or more than it may.
	NotProposed = "not-proposed"
	// Overlap: two tasks under way do not merge; both are told.
	Overlap = "overlap"
	// AwaitApproval: the risk is above low, or the origin is not trusted; a
	// person has to approve.
	AwaitApproval = "await-approval"
	// LaterText: the publisher says that the text was edited after it was taken; what
	// was taken is worked on.
	LaterText = "later-text"
	// Commented: there are comments on it at a forge; nothing of what is done changes.
	Commented = "commented"
	// AwaitDependency: implementation waits for other intents.
	AwaitDependency = "await-dependency"
	// BlockDependency: an intent that this one depends on did not get done.
	BlockDependency = "block-dependency"
	// Freed: what this one depends on failed, and got done after all; it goes on by
	// itself, in another run.
	Freed = "freed"
	// Cycle: intents wait for each other in a circle.
	Cycle = "dependency-cycle"
	// EmptyAttempt: nothing was committed; the task is implemented once more,
	// with that as feedback.
	EmptyAttempt = "empty-attempt"
	// Rework: the review rejected the change; the same session goes on with the
	// feedback.
	Rework = "rework"
	// Checks: the reviewer asked for checks of the project before its verdict;
	// they run on the commit, and the same session goes on with what they say.
	Checks = "checks"
	// SecondReview: the first reviewer approved, and the risk asks for a second one's
	// approval as well.
	SecondReview = "second-review"
	// Disagree: the second reviewer rejected what the first approved; the same session
	// goes on with what both say.
	Disagree = "reviewers-disagree"
	// Dispute: the reviewers disagree again; a person decides.
	Dispute = "reviewers-dispute"
	// Stronger: after a setback, what is tried next has a stronger model, or more effort.
	Stronger = "stronger"
	// BestOfTwo: the first of two changes is set aside with what became of it, and a
	// second one is made from the tip in a session of its own.
	BestOfTwo = "best-of-two"
	// Chosen: one of two changes goes on, by what code knows of both.
	Chosen = "chosen"
	// VerifyFailed: a verify command failed; its output is the feedback, as
	// after a rejection.
	VerifyFailed = "verify-failed"
	// VerifyAgain: the attempt after that found nothing to mend; the verify commands
	// run once more on the same change, since they may fail now and then.
	VerifyAgain = "verify-again"
	// FlakyCheck: a verify command passes and fails on the same tree, and fails without
	// the change, too; the change counts as verified, and no attempt is spent.
	FlakyCheck = "flaky-check"
	// RedBase: the verify commands fail on the base branch as well; the task
	// waits until they pass there, and no attempt is spent.
	RedBase = "red-base"
	// Combination: the change passes where it was made and the base branch passes, but not both
	// together; it is made again as after a conflict, with a file lock.
	Combination = "semantic-conflict"
	// Reimplement: a conflict; the plan is implemented anew from a fresh
	// checkout, with a file lock.
	Reimplement = "reimplement"
	// Escalate: a conflict although the task had the file lock; a person has to
	// look.
	Escalate = "escalate"
	// ReviewAgain: rebasing changed the patch, so the review does not hold any
	// more.
	ReviewAgain = "review-again"
	// MergedLate: a merge that was given up turned out to have been made.
	MergedLate = "merged-late"
	// PullHeld: the pull request was closed, is to be merged elsewhere, or
	// another one has changed its branch.
	PullHeld = "pull-request-held"
	// PullAdopted: a person has a commit that another one pushed to the branch
	// of the pull request become the change.
	PullAdopted = "pull-request-adopted"
	// ChecksFailed: checks of the forge failed on the pull request; their output is the feedback.
	ChecksFailed = "checks-failed"
	// ChangesWanted: a person who may asks for changes of a plan or a change that
	// waits for approval, or at the pull request; their words are the feedback.
	ChangesWanted = "changes-requested"
	// Unproven: the forge merged a commit that was not verified on its parent.
	Unproven = "merged-unproven"
	// Protected: the review approved a change of protected paths; a person has
	// to approve it as well.
	Protected = "protected-paths"
	// Approved: a person approved.
	Approved = "approved"
	// Dirty: a person's uncommitted changes are in the way of a merge.
	Dirty = "wait-for-files"
	// RetryAgent: the attempt failed; it is made once more after a pause.
	RetryAgent = "retry-agent"
	// Park: a limit with a known reset; it is waited for, and no retry is
	// spent.
	Park = "park"
	// AwaitAccount: the account of the agent refuses calls; the step is held until it
	// takes them again, and no retry is spent.
	AwaitAccount = "wait-for-account"
	// AwaitOrigin: the git origin does not answer; the step is held until it does.
	AwaitOrigin = "wait-for-origin"
	// AwaitReplica: no replica can do the step at present; it is tried again,
	// and no retry is spent.
	AwaitReplica = "wait-for-replica"
	// FreshSession: the session is lost; a new one begins with a recap.
	FreshSession = "new-session"
	// Fallback: an agent is at its limit; another one takes over in a new
	// session.
	Fallback = "fallback"
	// MoreMoney: a call used up the money reserved for it; its session goes on
	// with more.
	MoreMoney = "more-money"
	// Budget: the budget is used up; a person may raise it, and the work is
	// kept.
	Budget = "wait-for-budget"
	// Interrupted: the worker's service ended; the same session goes on in the
	// next one.
	Interrupted = "interrupted"
	// Reclaim: the task's own replica did not take the work; any replica may.
	Reclaim = "reclaim"
	// FailDependents: a task that this one depends on failed.
	FailDependents = "fail-dependents"
	// TaskFailed: the task is given up: no attempts are left, or another would
	// not help.
	TaskFailed = "task-failed"
	// NextIteration: a criterion is not met yet; another iteration towards the
	// goal begins.
	NextIteration = "next-iteration"
	// MaxIterations: the goal has had all its iterations.
	MaxIterations = "max-iterations"
	// PlainSummary: an iteration could not be summed up; its own report stands
	// in.
	PlainSummary = "plain-summary"
)
