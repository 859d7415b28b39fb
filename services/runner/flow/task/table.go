package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Stage is where a task stands.
type Stage string

// The stages. Any stands for all of them that are not the last, in a table.
const (
	Any          Stage = "any"
	Pending      Stage = "pending"
	Implementing Stage = "implementing"
	Rebasing     Stage = "rebasing"
	Summarizing  Stage = "summarizing" // an iteration of a goal
	Reviewing    Stage = "reviewing"   // a goal's change is judged here
	Locking      Stage = "locking"     // waits for the file lock after a conflict
	Merging      Stage = "merging"
	Waiting      Stage = "waiting"    // for a person's files to get out of the way
	Protected    Stage = "protected"  // waits for a person to approve a change of protected paths
	OverBudget   Stage = "overbudget" // waits for a person to raise the budget
	Done         Stage = "done"
	Failed       Stage = "failed"
)

// On is what happened to a task.
type On string

// What can happen to a task.
const (
	Ready         On = "dependencies done"
	Committed     On = "committed"
	Nothing       On = "nothing committed"
	NotNeeded     On = "no change needed"
	Verified      On = "verified"
	VerifyFailed  On = "verify failed"
	Conflict      On = "conflict"
	Summarized    On = "summarized"
	Approved      On = "approved"
	Unchanged     On = "approved without a change"
	Rejected      On = "rejected"
	Guarded       On = "protected paths"
	Merged        On = "merged"
	MergedLate    On = "merged after all"
	Changed       On = "the rebased patch differs"
	FilesInTheWay On = "a person's files are in the way"
	FilesMoved    On = "retry"
	MergeFailed   On = "cannot be merged"
	Locked        On = "file lock"
	LockRefused   On = "lost again to an outsider"
	NoBudget      On = "no budget"
	BudgetRaised  On = "retry with budget"
	Cancelled     On = "cancelled by a person"
	GaveUp        On = "retries used up"
)

// Row is one way of a task from stage to stage.
type Row struct {
	From   Stage
	On     On
	To     Stage
	Rule   string // is recorded; empty: none
	Spends bool   // spends one of the changes that the task may make again; none left: failed
}

// Table lists the ways of a task. Of each stage and happening it has at most one
// row; a row from Any is for the stages without a row of their own.
type Table []Row

// Find returns what follows in a stage.
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

// Mermaid returns the table as a state diagram.
func (t Table) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n  direction LR\n  [*] --> pending\n")
	for _, r := range t {
		fmt.Fprintf(&b, "  %s --> %s: %s\n", r.From, r.To, r.On)
	}
	b.WriteString("  done --> [*]\n  failed --> [*]\n")
	return b.String()
}

// Changes is the table of a task that makes a change and has it reviewed.
var Changes = slices.Concat(Table{
	{From: Pending, On: Ready, To: Implementing},
	{From: Implementing, On: Committed, To: Rebasing},
	{From: Implementing, On: Nothing, To: Implementing, Rule: rule.EmptyAttempt, Spends: true},
	{From: Implementing, On: NotNeeded, To: Done},
	{From: Rebasing, On: Verified, To: Reviewing},
	{From: Rebasing, On: VerifyFailed, To: Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: Rebasing, On: Conflict, To: Locking},
	{From: Reviewing, On: Approved, To: Merging},
	{From: Reviewing, On: Rejected, To: Implementing, Rule: rule.Rework, Spends: true},
}, Merges)

// Merges lists the ways of a change that was approved, and those that lead out of
// any stage. Every table ends with them.
var Merges = Table{
	{From: Reviewing, On: Guarded, To: Protected, Rule: rule.Protected},
	{From: Protected, On: Guarded, To: Protected, Rule: rule.Protected},
	{From: Protected, On: Approved, To: Merging},
	{From: Merging, On: Merged, To: Done},
	{From: Merging, On: Conflict, To: Locking},
	{From: Merging, On: Changed, To: Reviewing, Rule: rule.ReviewAgain},
	{From: Merging, On: VerifyFailed, To: Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: Merging, On: FilesInTheWay, To: Waiting, Rule: rule.Dirty},
	{From: Merging, On: MergeFailed, To: Failed},
	{From: Waiting, On: FilesMoved, To: Merging},
	{From: Locking, On: Locked, To: Implementing, Rule: rule.Reimplement},
	{From: Locking, On: LockRefused, To: Failed, Rule: rule.Escalate},
	{From: Any, On: NoBudget, To: OverBudget, Rule: rule.Budget},
	{From: OverBudget, On: BudgetRaised, To: Any},
	{From: Any, On: MergedLate, To: Done, Rule: rule.LandedLate},
	{From: Any, On: Cancelled, To: Failed},
	{From: Any, On: GaveUp, To: Failed},
}
