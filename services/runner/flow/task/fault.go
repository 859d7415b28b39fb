package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/verdict"
)

const (
	// firstLook is how long a task waits before it looks whether a red base branch is mended. The
	// pause doubles; a look where nothing moved runs no command.
	firstLook = time.Minute
	// longestLook bounds that pause.
	longestLook = 15 * time.Minute
	// maxTried bounds the trials of a change that are remembered: the oldest ones show what failed.
	maxTried = 24
)

// Fault decides what follows from a change that did not pass, by whose fault
// that is. The methods stand on a type of their own, which has no state.
type Fault struct{ *Task }

// Broken reports whether a change did not pass, and no check is to blame for that.
func Broken(c *forge.Rebase) bool {
	fault := verdict.Blame(c.Verify, c.Tree)
	return fault != verdict.NoFault && fault != verdict.FaultOfCheck
}

// remember returns a rebased change with what earlier trials of the same patch have shown: one that
// made a check fail now and then has not stopped to do so because it passed once more.
//
// It reports as well whether the same patch was to blame before, and is once more.
func (t Fault) remember(rb *forge.Rebase) (_ *forge.Rebase, again bool) {
	if t.TriedPatch != rb.PatchID {
		t.Tried = nil
	}
	if v := rb.Verify; v != nil {
		again = verdict.FailsAgain(t.Tried, v.Trials)
	}
	out := *rb
	out.Verify = verdict.Recall(t.Tried, rb.Verify, rb.Tree)
	if c := t.Candidate; out.Unverified && c != nil && c.Unverified && c.MadeOn != "" {
		out.MadeOn = c.MadeOn // it is the same change, which stands on a later tip and still was not verified
	}
	t.keepTrials(&out)
	return &out, again
}

// keepTrials keeps the trials of a change, for the worker that verifies it next
// and for the decision on what that one reports.
func (t Fault) keepTrials(c *forge.Rebase) {
	if c.Verify == nil || verdict.Unsteady(t.Tried) && !verdict.Unsteady(c.Verify.Trials) && Broken(c) {
		return // what is known of the change counts more than what is known of the base
	}
	t.Tried, t.TriedPatch = slices.Clone(c.Verify.Trials[:min(len(c.Verify.Trials), maxTried)]), c.PatchID
}

// passed goes on with a change that passed.
func (t Fault) passed(x *Turn, rb *forge.Rebase) {
	t.Reds, t.Failure = 0, ""
	t.flaky(x, rb.Verify, rb.Tree)
	if verdict.Failing(rb.Verify) != "" { // what follows is the strategy's to say
		x.Correct("check failed")
	}
	t.step(x, Input{On: Verified})
}

// flaky notes that a command of the project gave both answers on one tree, and
// fails without the change, too. That costs nothing.
func (t Fault) flaky(x *Turn, r *forge.VerifyReport, tree string) {
	if command := verdict.Flaky(r, tree); command != "" {
		x.Adjust(rule.FlakyCheck, t.ID, rule.FirstLine(command))
	}
}

// failed goes on with a change that did not pass. Only where it is to blame itself
// that spends anything. A table that has no way for a fault of others takes it as the
// change's. again says that the same patch was to blame before, and is once more.
func (t Fault) failed(x *Turn, rb *forge.Rebase, again bool) {
	feedback := VerifyFeedback(rb.Verify)
	in := Input{On: VerifyFailed, Feedback: feedback, Again: again}
	fault := verdict.Blame(rb.Verify, rb.Tree)
	table := x.Strategy.Table()
	if _, ok := table.Find(t.Stage, BaseRed); ok && fault == verdict.FaultOfBase && t.waits(x) {
		t.red(x, rb)
		return
	}
	t.Reds, t.Failure = 0, ""
	if _, ok := table.Find(t.Stage, Combination); ok && fault == verdict.FaultOfBoth && len(rb.Landed) > 0 {
		in = Input{On: Combination, Detail: cause.Gist(feedback), Conflicts: rb.Landed, Files: rb.Files, Feedback: cause.Together(rb)}
	}
	t.step(x, in)
}

// waits reports whether a task waits for a red base branch. A goal, which may be to
// mend it, does only once it was reached, in its merge, and as long as it waits then.
func (t Fault) waits(x *Turn) bool {
	return x.Strategy.Step(Implementing) != forge.StepExecute || t.Stage == Merging || t.Reds > 0
}

// outrun has a recipe made again with precedence whose check fails on a tip that has moved
// since, and reports whether it does: what was merged meanwhile may be what fails. With
// precedence no sibling moves the tip, and a check that fails is the change's own fault.
func (t Fault) outrun(x *Turn, issues []string) bool {
	if _, ok := x.Strategy.Table().Find(t.Stage, Combination); !ok || x.Intent.Recipe == "" || t.Candidate == nil ||
		len(t.Candidate.Landed) == 0 || !x.Rules.Has(rules.OutrunCheck) {
		return false
	}
	x.Correct("rejected")
	said, rb := strings.Join(issues, "\n"), t.Candidate
	t.step(x, Input{On: Combination, Detail: cause.Gist(said), Conflicts: rb.Landed, Files: rb.Files, Feedback: cause.Outrun(rb, said)})
	return true
}

// red waits for the base branch to pass again: for a person or another change to mend it.
func (t Fault) red(x *Turn, rb *forge.Rebase) {
	x.Correct("base red")
	why := fmt.Sprintf("the base branch is red at %.10s: %q fails without the change, too", rb.Base, rule.FirstLine(rb.Verify.Command))
	if t.Reds == 0 {
		x.Adjust(rule.RedBase, t.ID, why)
	}
	t.RedAt, t.RedBy = rb.Base, rb.Verify.Command
	t.step(x, Input{On: BaseRed, Why: why})
}

// wait begins the stage in which a task waits for the base branch. The rules do
// not hear of its moves, so the task looks.
func (t Fault) wait(x *Turn, why string) {
	pause := min(firstLook<<min(t.Reds, 10), longestLook)
	t.Reds++
	t.Stage, t.Failure = Red, why
	x.emit(Wait{Task: t.ID, Step: forge.StepRebase, At: x.Now.Add(pause), Base: t.RedAt, Command: t.RedBy})
}

// MayAwait reports whether the verification that a task is about to begin may
// wait for a red base branch.
func (t Fault) MayAwait(strategy Strategy) bool {
	return t.Stage == Rebasing && (strategy.Step(Implementing) != forge.StepExecute || t.Reds > 0)
}

// Await begins the stage in which a task waits for the base branch, because it is known to be red.
func (t Fault) Await(why string) {
	t.Reds = max(t.Reds, 1)
	t.Stage, t.Failure = Red, why
}

// OfBase reports whether a task waits for the base branch to pass again, or just looks
// whether it does. While it looks it waits all the same, for those who are told:
// otherwise each look would be another line of the inbox that goes and comes back.
func (t Fault) OfBase() bool { return t.Reds > 0 && (t.Stage == Red || t.Stage == Rebasing) }

// LookAgain verifies a change anew that waits for the base branch, because a person says so.
// A person with instructions has the change mend the base branch, as after any failed verify.
func (t Fault) LookAgain(x *Turn, mend bool) {
	t.Tried = nil
	switch {
	case t.Stage != Red:
	case mend:
		feedback := t.Failure
		if t.Candidate != nil && t.Candidate.Verify != nil {
			feedback = VerifyFeedback(t.Candidate.Verify)
		}
		t.Reds, t.Failure = 0, ""
		t.step(x, Input{On: VerifyFailed, Feedback: feedback})
	default:
		t.Again(x, forge.StepRebase)
	}
}

// MayLeave reports whether the verify commands may be left to the merge, where they
// run on what lands: of an ordinary change of which nothing bad is known. One that
// failed is verified before it is reviewed again, so that a change that never passes
// costs one review in vain and no more. What criteria, two changes for one task, or
// a search for a red base branch are decided by is decided before the review.
func (t Fault) MayLeave(p *forge.Policy, strategy Strategy) bool {
	_, ordinary := strategy.(Change)
	return p.VerifyInMerge && ordinary && t.Reds == 0 && len(t.Tried) == 0 && len(t.Checks) == 0 && (!t.Round.Begun || t.Round.Over) &&
		(t.Candidate == nil || !Broken(t.Candidate))
}

// Known returns the trials of the change as it is, for whoever verifies it
// next; none once something was added to it.
func (t Fault) Known() []forge.CheckRun {
	if t.Candidate == nil || t.Candidate.Head != t.Head || t.Taken != nil {
		return nil
	}
	return t.Tried
}
