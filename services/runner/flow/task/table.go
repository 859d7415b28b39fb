package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Stage is where a task stands.
type Stage string

// The stages.
const (
	// Any stands for every stage, in a table.
	Any Stage = "any"
	// Pending waits for the tasks that it depends on.
	Pending Stage = "pending"
	// Implementing has the change made, or made again.
	Implementing Stage = "implementing"
	// Rebasing puts the change on the tip of the base branch and verifies it there.
	Rebasing Stage = "rebasing"
	// Summarizing sums up an iteration of a goal.
	Summarizing Stage = "summarizing"
	// Reviewing has the change reviewed, or that of a goal judged.
	Reviewing Stage = "reviewing"
	// Checking runs checks of the project that the reviewer asked for, on the
	// commit that is reviewed.
	Checking Stage = "checking"
	// Locking waits for a file lock after a conflict.
	Locking Stage = "locking"
	// Merging waits for its turn in the merge queue.
	Merging Stage = "merging"
	// Waiting waits for a person to move files out of the way of the merge.
	Waiting Stage = "waiting"
	// Held waits for a person to look at its pull request.
	Held Stage = "held"
	// Protected waits for a person to approve a change of protected paths.
	Protected Stage = "protected"
	// Disputed waits for a person to decide between two reviewers.
	Disputed Stage = "disputed"
	// Asking waits for a person to answer a question, without which its agent cannot go on.
	Asking Stage = "asking"
	// Red waits for the base branch to pass its own verify commands again.
	Red Stage = "red"
	// OverBudget waits for a person to raise the budget.
	OverBudget Stage = "overbudget"
	// Done is the end of a task whose change is merged, or not needed.
	Done Stage = "done"
	// Failed is the end of a task that was given up. A retry begins it again.
	Failed Stage = "failed"
)

// On is one kind of event in the life of a task.
type On string

// What can happen to a task.
const (
	// Ready: all tasks that it depends on are done.
	Ready On = "dependencies done"
	// Stands: they are, and a change of a former run was neither verified nor
	// reviewed to its end, for which it is not to blame.
	Stands On = "change stands"
	// Committed: an attempt committed something.
	Committed On = "committed"
	// Nothing: an attempt committed nothing.
	Nothing On = "nothing committed"
	// NothingToMend: an attempt added nothing to a change that had failed to verify.
	NothingToMend On = "nothing to fix"
	// NotNeeded: nothing has to be changed, and that is fine.
	NotNeeded On = "no change needed"
	// Blocked: the agent cannot go on before a person has answered a question.
	Blocked On = "blocked"
	// Answered: a person has answered it.
	Answered On = "answered"
	// NothingToDo: an attempt claims that the base meets the task already.
	NothingToDo On = "nothing to do"
	// Verified: the change is on the tip, and the verify commands passed, or are left to the merge.
	Verified On = "verified"
	// VerifyFailed: the verify commands failed on the tip.
	VerifyFailed On = "verify failed"
	// BaseRed: they fail without the change, too.
	BaseRed On = "the base is red"
	// LookAgain: the time has come to look, or a person says retry.
	LookAgain On = "look again"
	// Combination: the change passes where it was made, and fails with what was
	// merged meanwhile. So may a recipe whose check fails.
	Combination On = "semantic conflict"
	// Conflict: the change does not merge with what was merged meanwhile.
	Conflict On = "conflict"
	// Summarized: the iteration is summed up.
	Summarized On = "summarized"
	// Approved: the review approved, or every criterion is met.
	Approved On = "approved"
	// Unchanged: the review of the base approved, or every criterion is met without a change.
	Unchanged On = "approved without a change"
	// Rejected: the review rejected, or not every criterion is met.
	Rejected On = "rejected"
	// FirstApproved: the first of two reviewers approved. Of a change that waits for a person it is
	// that the policy asks for two since.
	FirstApproved On = "approved by the first of two"
	// Disagreed: the second reviewer rejected what the first approved.
	Disagreed On = "the second reviewer rejected"
	// DisagreedAgain: the same, as often in a row as it may be.
	DisagreedAgain On = "the reviewers disagree again"
	// Wanted: the reviewer asks for checks of the project before it gives a verdict.
	Wanted On = "asks for checks"
	// Ran: they have run.
	Ran On = "checks ran"
	// Guarded: the approved change is one of protected paths, and no person has approved it.
	Guarded On = "protected paths"
	// Merged: the change is on the base branch.
	Merged On = "merged"
	// MergedLate: a merge that was given up turns out to have been made.
	MergedLate On = "merged after all"
	// Changed: rebased once more for the merge, the change is another one.
	Changed On = "the rebased patch differs"
	// FilesInTheWay: uncommitted changes of a person are in the way.
	FilesInTheWay On = "a person's files are in the way"
	// FilesMoved: a person says retry.
	FilesMoved On = "retry"
	// PullHeld: its pull request was closed, is to be merged elsewhere, or
	// another one has changed its branch.
	PullHeld On = "its pull request waits for a person"
	// PullFreed: that is over.
	PullFreed On = "its pull request continues"
	// Adopted: a person has a commit of another one on its branch become the change.
	Adopted On = "adopted by a person"
	// NotAdopted: that commit cannot become the change.
	NotAdopted On = "cannot be adopted"
	// ChecksFailed: checks of the forge failed on it.
	ChecksFailed On = "checks of the forge failed"
	// ChangesWanted: a person who may asks for changes, at its pull request or
	// where it waits for their approval.
	ChangesWanted On = "changes requested"
	// MergeFailed: the merge failed for a reason that the task cannot mend.
	MergeFailed On = "cannot be merged"
	// Locked: the project granted the file lock.
	Locked On = "file lock"
	// LockRefused: the task conflicts although it has the lock.
	LockRefused On = "lost again to an outsider"
	// NoBudget: there is no budget for the next step.
	NoBudget On = "no budget"
	// BudgetRaised: a person says retry, and the policy was read again.
	BudgetRaised On = "retry with budget"
	// Cancelled: a person cancels the task.
	Cancelled On = "cancelled by a person"
	// GaveUp: a step failed as often as it may.
	GaveUp On = "the agent's retries used up"
)

// Row is one way of a task from stage to stage.
type Row struct {
	// From is the stage that the row is for.
	From Stage
	// On selects the row, together with From.
	On On
	// To is the stage that follows.
	To Stage
	// Rule is recorded in the history; empty if none is.
	Rule string
	// Spends says that the way costs one of the times that the change may be made
	// again. When none is left, the task fails instead.
	Spends bool
}

// Table lists the ways of a task. Of each stage and happening it has at most one
// row; a row from Any is for the stages without a row of their own.
type Table []Row

// Find returns the row for an event in a stage, and whether there is one.
func (t Table) Find(from Stage, on On) (Row, bool) {
	found := -1
	for i := range t {
		if r := &t[i]; r.On == on && (r.From == from || r.From == Any) {
			found = i
			if r.From == from {
				break
			}
		}
	}
	if found < 0 {
		return Row{}, false
	}
	return t[found], true
}

// Mermaid returns the table as a state diagram. Ways that spend have an asterisk.
func (t Table) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n  direction LR\n  [*] --> pending\n")
	for _, r := range t {
		spends := ""
		if r.Spends {
			spends = " *"
		}
		fmt.Fprintf(&b, "  %s --> %s: %s%s\n", r.From, r.To, r.On, spends)
	}
	b.WriteString("  done --> [*]\n  failed --> [*]\n")
	return b.String()
}

// Changes is the table of a task that makes a change and has it reviewed. While two changes
// are made for one task, Best.takes answers the ends of each in place of these rows.
var Changes = slices.Concat(Table{
	{From: Pending, On: Ready, To: Implementing},
	{From: Pending, On: Stands, To: Rebasing},
	{From: Implementing, On: Committed, To: Rebasing},
	{From: Implementing, On: Nothing, To: Implementing, Rule: rule.EmptyAttempt, Spends: true},
	{From: Implementing, On: NothingToMend, To: Rebasing, Rule: rule.VerifyAgain},
	{From: Implementing, On: NotNeeded, To: Done},
	{From: Implementing, On: NothingToDo, To: Reviewing},
	{From: Rebasing, On: Verified, To: Reviewing},
	{From: Rebasing, On: VerifyFailed, To: Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: Rebasing, On: BaseRed, To: Red},
	{From: Rebasing, On: Combination, To: Locking, Rule: rule.Combination},
	{From: Rebasing, On: Conflict, To: Locking},
	{From: Reviewing, On: Approved, To: Merging},
	{From: Reviewing, On: Unchanged, To: Done, Rule: rule.NothingToDo},
	{From: Reviewing, On: Rejected, To: Implementing, Rule: rule.Rework, Spends: true},
	{From: Reviewing, On: Combination, To: Locking, Rule: rule.Combination},
	{From: Reviewing, On: Wanted, To: Checking, Rule: rule.Checks},
	{From: Checking, On: Ran, To: Reviewing},
	{From: Reviewing, On: FirstApproved, To: Reviewing, Rule: rule.SecondReview},
	{From: Reviewing, On: Disagreed, To: Implementing, Rule: rule.Disagree, Spends: true},
	{From: Reviewing, On: DisagreedAgain, To: Disputed, Rule: rule.Dispute},
	{From: Protected, On: FirstApproved, To: Reviewing, Rule: rule.SecondReview},
	{From: Disputed, On: Approved, To: Merging},
	{From: Disputed, On: Guarded, To: Protected, Rule: rule.Protected},
	{From: Disputed, On: Unchanged, To: Done, Rule: rule.NothingToDo},
	{From: Disputed, On: Rejected, To: Implementing, Rule: rule.Rework, Spends: true},
	{From: Disputed, On: ChangesWanted, To: Implementing, Rule: rule.ChangesWanted},
	{From: Held, On: Adopted, To: Rebasing, Rule: rule.PullAdopted},
	{From: Rebasing, On: NotAdopted, To: Held, Rule: rule.PullHeld},
}, Merges)

// Merges lists the ways of a change that was approved, of an agent that is blocked, and those
// that lead out of any stage. Every table ends with them.
var Merges = Table{
	{From: Implementing, On: Blocked, To: Asking, Rule: rule.Blocked},
	{From: Asking, On: Answered, To: Implementing}, // for the diagram: AnsweredBy repeats the step
	{From: Reviewing, On: Guarded, To: Protected, Rule: rule.Protected},
	{From: Protected, On: Guarded, To: Protected, Rule: rule.Protected},
	{From: Protected, On: Approved, To: Merging},
	{From: Protected, On: ChangesWanted, To: Implementing, Rule: rule.ChangesWanted},
	{From: Merging, On: Merged, To: Done},
	{From: Merging, On: Conflict, To: Locking},
	{From: Merging, On: Changed, To: Reviewing, Rule: rule.ReviewAgain},
	{From: Merging, On: VerifyFailed, To: Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: Merging, On: BaseRed, To: Red},
	{From: Merging, On: Combination, To: Locking, Rule: rule.Combination},
	{From: Red, On: LookAgain, To: Rebasing}, // for the diagram: the timer repeats the step
	{From: Red, On: VerifyFailed, To: Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: Merging, On: FilesInTheWay, To: Waiting, Rule: rule.Dirty},
	{From: Merging, On: PullHeld, To: Held, Rule: rule.PullHeld},
	{From: Held, On: PullFreed, To: Merging}, // for the diagram: the request goes on
	{From: Held, On: FilesMoved, To: Merging},
	{From: Merging, On: ChecksFailed, To: Implementing, Rule: rule.ChecksFailed, Spends: true},
	{From: Merging, On: ChangesWanted, To: Implementing, Rule: rule.ChangesWanted},
	{From: Merging, On: MergeFailed, To: Failed},
	{From: Waiting, On: FilesMoved, To: Merging},
	{From: Locking, On: Locked, To: Implementing, Rule: rule.Reimplement},
	{From: Locking, On: LockRefused, To: Failed, Rule: rule.Escalate},
	{From: Any, On: NoBudget, To: OverBudget, Rule: rule.Budget},
	{From: OverBudget, On: BudgetRaised, To: Any}, // for the diagram: BudgetRaised repeats the step
	{From: Any, On: MergedLate, To: Done, Rule: rule.MergedLate},
	{From: Any, On: Cancelled, To: Failed},
	{From: Any, On: GaveUp, To: Failed},
}
