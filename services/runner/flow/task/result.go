package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Start begins a task whose dependencies are done.
func (t *Task) Start(x *Turn) {
	if _, ok := x.Strategy.Table().Find(Pending, Stands); !ok || !t.Stands {
		t.step(x, Input{On: Ready})
		return
	}
	t.Status, t.Stands = forge.TaskImplementing, false
	t.step(x, Input{On: Stands})
}

// Made takes over commits, session and checkout of an attempt, whatever the change is
// worth.
func (t *Task) Made(im *forge.Implementation, by Worker) {
	t.Implement.Worked()
	t.Session.Reported(by.Session)
	t.Replica, t.Fresh, t.Continue = by.Replica, false, false
	t.Word.Answered, t.Word.NothingToDo = false, ""
	t.Base, t.Head = im.Base, im.Head
}

// Happened takes a happening whose facts a strategy has taken already.
func (t *Task) Happened(x *Turn, in Input) { t.step(x, in) }

// Implemented takes an implementation.
func (t *Task) Implemented(x *Turn, im *forge.Implementation, by Worker) {
	t.Made(im, by)
	switch {
	case im.Blocked != nil && t.Round.First != nil:
		// A question that the first needed no answer to is not asked.
		t.step(x, Input{On: Blocked, Why: "its agent asks: " + im.Blocked.Question})
	case Said{t}.Blocked(x, forge.StepImplement, im.Blocked):
	case im.Commits > 0:
		t.ReportOverlaps(x, im.Overlaps)
		t.step(x, Input{On: Committed})
	case im.Unchanged:
		t.step(x, Input{On: NotNeeded})
	case t.failedToVerify():
		x.Correct("empty")
		t.step(x, Input{On: NothingToMend, Detail: cause.Gist(t.Feedback)})
	case im.NothingToDo != "" && t.Head == t.Base && x.Intent.Recipe == "":
		x.Correct("nothing to do")
		if t.Round.First != nil {
			t.step(x, Input{On: NothingToDo, Why: im.NothingToDo})
			return
		}
		Said{t}.claimed(x, im.NothingToDo)
	default:
		x.Correct("empty")
		t.step(x, Input{On: Nothing, Feedback: whyNothing(t, x.Intent.Recipe, im)})
	}
}

// failedToVerify reports whether the change, as it is, is the one that the verify
// commands failed on last.
func (t *Task) failedToVerify() bool {
	c := t.Candidate
	return c != nil && c.Head == t.Head && Broken(c)
}

// whyNothing returns the feedback on an attempt that committed nothing.
func whyNothing(t *Task, recipe string, im *forge.Implementation) string {
	why := "Nothing was committed: the attempt left the branch as it was. Make the change and commit it."
	switch {
	case recipe != "" && t.Rejections > 0:
		why = t.Feedback // a script makes the same change again: what was wrong with that is the reason
		if note := fmt.Sprintf("Recipe %q made no other change than that.", recipe); !strings.HasSuffix(why, note) {
			why += "\n\n" + note
		}
	case recipe != "":
		why = fmt.Sprintf("Recipe %q changed nothing. If that is fine, set allow_empty: true in it.", recipe)
	}
	if im.Leftover != "" {
		why += " Changes that were not committed are kept as " + im.Leftover + "."
	}
	if len(im.Denied) > 0 {
		why += " Its program did not allow: " + strings.Join(im.Denied, "; ") + "." +
			" Do it in another way that is allowed. A file below .claude/ cannot be written by a tool that edits: " +
			"write it elsewhere, and put it there with install -D."
	}
	if im.Summary != "" && recipe == "" {
		why += " The agent said: " + im.Summary
	}
	return why
}

// Rebased takes the change as it is on the base branch's tip, verified there.
func (t *Task) Rebased(x *Turn, rb *forge.Rebase) {
	if t.Stage == Checking {
		Asked{t}.ran(x, rb)
		return
	}
	t.Rebase.Worked()
	if (Taking{t}).refused(x, rb) {
		return
	}
	if len(rb.Conflicts) > 0 {
		x.Correct("conflict")
		t.step(x, Input{On: Conflict, Conflicts: rb.Conflicts, Files: rb.Files})
		return
	}
	fault := Fault{t}
	rb, again := fault.remember(rb)
	t.Base, t.Head, t.Candidate = rb.Base, rb.Head, rb
	t.ReportOverlaps(x, rb.Overlaps)
	if !Broken(rb) {
		fault.passed(x, rb)
		return
	}
	x.Correct("verify failed")
	fault.failed(x, rb, again)
}

// VerifyFeedback returns the feedback on a change that failed to verify. Its first line, which
// is all that lists show of it, has the line of the output that matters most.
func VerifyFeedback(v *forge.VerifyReport) string {
	text := fmt.Sprintf("%q failed after the change was put on the present base branch:\n%s", v.Command, v.Output)
	if why := cause.Line(v.Output); why != "" {
		return "verify failed: " + why + "\n" + text
	}
	return text
}

// Reviewed takes a review, whose verdict the rules make, and who answered. It
// returns why that is none of this change; then nothing has happened.
func (t *Task) Reviewed(x *Turn, review *forge.Review, answered forge.Reviewer) error {
	rv := *review
	pair, none := Pair{t}, errors.New("the review is not a verdict on commit "+t.Head)
	if rv.Head != t.Head || rv.TaskID != t.ID {
		return none
	}
	if err := pair.Refuse(&rv, answered); err != nil {
		return err
	}
	if (Asked{t}).ask(x, rv.Asked) {
		return nil
	}
	if rv.Verdict != forge.VerdictApproved && rv.Verdict != forge.VerdictRejected {
		return none
	}
	rv.Asked = Asked{t}.kept()
	t.Review.Worked()
	rv.Attempt, rv.CreatedAt = t.Implement.Number, x.Now
	decide(x, t, &rv)
	first, second := &rv, (*forge.Review)(nil)
	if t.Second != nil {
		first, second = pair.First(), &rv
	} else {
		t.Answered = answered
	}
	on := Combine(first, second, t.Second != nil || NeedsSecond(x.Policy, x.Intent))
	t.Reviews = append(slices.Clip(t.Reviews), rv)
	t.Policy = x.Policy.Approvals.Commit
	if on != Disagreed && on != FirstApproved {
		t.Disputes = 0 // of a disagreement in a row the first's word alone says nothing
	}
	switch {
	case on == FirstApproved:
		pair.seconded(x)
	case on == Disagreed:
		pair.disagree(x)
	case on == Rejected && Fault{t}.outrun(x, rv.Issues): // and is made again with precedence
	case on == Rejected:
		x.Correct("rejected")
		pair.rejected(x, Rejected, strings.Join(rv.Issues, "\n")+cause.Asked(rv.Asked))
	case t.Word.NothingToDo != "":
		Said{t}.confirmed(x)
	default:
		t.Approved(x)
	}
	return nil
}

// rejected has the change made again, with the words of who rejected it.
func (t Pair) rejected(x *Turn, on On, words string) {
	if t.Word.NothingToDo != "" {
		words = cause.Refuted(words)
	}
	t.step(x, Input{On: on, Feedback: words})
}

// Approved takes the approval of the candidate by a review or a judgment, or, in
// stage protected, looks once more whether a person has to approve it too.
func (t *Task) Approved(x *Turn) {
	if (Pair{t}).halfway(x) {
		Pair{t}.seconded(x)
		return
	}
	detail, why := Pair{t}.guarded(x)
	if why == "" || t.Cleared.Of(t.Candidate) != nil {
		t.step(x, Input{On: Approved})
		return
	}
	t.step(x, Input{On: Guarded, Detail: detail, Why: why})
}

// Clear takes people's approval of a change of protected paths. It is of exactly this
// patch, and of the reasons why it was asked for.
func (t *Task) Clear(x *Turn, by *approval.Granted) {
	t.Cleared = Clearance{Name: clearance(t.Candidate), By: by}
	t.Approved(x)
}

// AnsweredLock takes the project's answer to a request for a file lock. A refusal
// means that the same files are changed from outside the project's queue.
func (t *Task) AnsweredLock(x *Turn, granted bool) {
	detail := rule.FirstLine(t.Feedback)
	if granted {
		t.Fresh = true
		t.step(x, Input{On: Locked, Detail: detail})
		return
	}
	x.emit(Escalate{})
	t.step(x, Input{On: LockRefused, Detail: detail, Why: "conflicted again although no other task could get in between: " +
		"somebody else changes the same files. Retry when they have finished"})
}

// AnsweredMerge takes the outcome of the merge that the task asked for.
func (t *Task) AnsweredMerge(x *Turn, m *forge.MergeResult) {
	switch m.Outcome {
	case forge.MergeDone:
		Fault{t}.flaky(x, m.Verify, m.Tree)
		merged(x, t, m)
		t.step(x, Input{On: Merged})
	case forge.MergeConflict:
		t.step(x, Input{On: Conflict, Conflicts: m.Files, Files: t.Candidate.Files})
	case forge.MergeVerifyFailed:
		failed := *t.Candidate
		failed.Verify = m.Verify
		t.Candidate = &failed
		on := failed // where it failed: on another tip
		if m.Candidate != nil {
			on = *m.Candidate
			on.Verify = m.Verify
		}
		Fault{t}.keepTrials(&on)
		Fault{t}.failed(x, &on, false)
	case forge.MergePatchChanged:
		t.Candidate = m.Candidate
		t.Base, t.Head = m.Candidate.Base, m.Candidate.Head
		t.step(x, Input{On: Changed, Detail: "the rebased change is not the one that was reviewed"})
	case forge.MergeClosed, forge.MergeEdited, forge.MergeProposed, forge.MergeChecksFailed, forge.MergeUnwanted, forge.MergeDenied, forge.MergeOverdue:
		Pulled{t}.answered(x, m)
	case forge.MergeDirty:
		files := strings.Join(m.Files, ", ")
		t.step(x, Input{
			On: FilesInTheWay, Detail: files,
			Why: fmt.Sprintf("your working tree is in the way: %s. Commit, stash or finish that, then: pfl-forge retry %s", files, x.Intent.ID),
		})
	default:
		t.CannotMerge(x, fmt.Sprintf("the merge ended in %q, which this version does not know", m.Outcome))
	}
}

// CannotMerge gives the task up because its change cannot be merged.
func (t *Task) CannotMerge(x *Turn, why string) { t.step(x, Input{On: MergeFailed, Why: why}) }

// MergedLate takes a merge that had been given up: the change is on the base
// branch, so the task is done whatever was decided meanwhile.
func (t *Task) MergedLate(x *Turn, m *forge.MergeResult) {
	merged(x, t, m)
	t.step(x, Input{On: MergedLate, Detail: m.Commit})
}

// merged notes the commit of a task on the base branch, and whether it is
// another than what was verified.
func merged(x *Turn, t *Task, m *forge.MergeResult) {
	t.Base, t.Head, t.Commit = m.Parent, m.Commit, m.Commit
	if m.Unproven != "" {
		x.Adjust(rule.Unproven, t.ID, m.Unproven)
	}
}

// FilesMoved asks for the merge again after a person's files were in its way.
func (t *Task) FilesMoved(x *Turn) { t.step(x, Input{On: FilesMoved}) }

// NoBudget makes a step wait for a person, because there is no budget for it.
func (t *Task) NoBudget(x *Turn, step forge.Step, why string) {
	t.Unfunded = step
	t.Uncount(step)
	t.step(x, Input{On: NoBudget, Detail: why, Why: why})
}

// BudgetRaised tries again the step that there was no budget for.
func (t *Task) BudgetRaised(x *Turn) {
	t.Failure = ""
	t.Again(x, t.Unfunded)
}

// Cancel gives the task up because a person says so.
func (t *Task) Cancel(x *Turn, reason string) {
	why := forge.CancelledByAPerson
	if reason != "" {
		why += ": " + reason
	}
	t.step(x, Input{On: Cancelled, Why: why})
}

// AttemptFailed keeps session, checkout and message of a failed attempt for the next
// one, as far as rule.Failures says so.
func (t *Task) AttemptFailed(x *Turn, step forge.Step, f *forge.Failure, by Worker) {
	then := rule.Failures[f.Reason]
	if step != forge.StepRebase {
		s := x.Strategy.Session(t, step)
		s.Reported(by.Session)
		if then.Then == rule.NewSession {
			s.Start(x.Names, t.ID, step)
		}
	}
	if !Makes(step) {
		return
	}
	t.Replica, t.Continue = then.For(x.Rules, by.Replica), then.Keep
	if then.Explain {
		t.Feedback = f.Message
	}
}

// GaveUp takes that a step is not tried any more.
func (t *Task) GaveUp(x *Turn, step forge.Step, why string) {
	if !x.Strategy.GaveUp(x, t, step, why) {
		t.step(x, Input{On: GaveUp, Why: fmt.Sprintf("%s: %s", step, why)})
	}
}

// Uncount takes back that an attempt at a step counts. A step of the whole
// intent, without a task, has no such count.
func (t *Task) Uncount(step forge.Step) {
	if t != nil && Makes(step) {
		t.Attempts--
	}
}

// Stopped notes that a pause withdrew an attempt at a step: the next one goes on
// from there.
func (t *Task) Stopped(step forge.Step) {
	if Makes(step) {
		t.Continue = true
		t.Uncount(step)
	}
}

// Reclaim begins another claim of the newest implementation, for any replica.
func (t *Task) Reclaim() {
	t.Implement.Claim++
	t.Replica = ""
}
