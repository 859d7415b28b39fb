package changes

import (
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
)

// This file finds in a record what its summary does not say: the facts that a
// change follows from, and who asked for it. It depends on the record and the
// summary before it alone, so that every runner finds the same.

// changesOf returns the changes of a stored record. Most records change nothing
// that is told, and are not decoded: the summary is a small part of them.
func changesOf(m conn.Stored, before, now *forge.Summary) ([]change, error) {
	list := changes(before, now)
	if len(list) == 0 && !judged(before, now) {
		return nil, nil
	}
	rec, err := m.Record()
	if err != nil {
		return nil, err
	}
	return withFacts(list, before, now, rec.Events), nil
}

// judged reports whether an attempt, or a merge, ended that may have found fault with a change.
func judged(before, now *forge.Summary) bool {
	if before == nil {
		return false
	}
	for _, t := range before.Tasks {
		i := slices.IndexFunc(now.Tasks, func(other forge.TaskSummary) bool { return other.ID == t.ID })
		if t.Step == forge.StepMerge && (i < 0 || now.Tasks[i].Step != forge.StepMerge) {
			return true
		}
	}
	return slices.ContainsFunc(before.Open, func(a forge.Attempt) bool {
		return (a.Step == forge.StepReview || a.Step == forge.StepRebase) && !now.Wants(a)
	})
}

// withFacts adds to changes by whom and by which facts they came about, and
// before them those changes that only the events of a record show.
func withFacts(list []change, before, now *forge.Summary, events []forge.Event) []change {
	if before == nil {
		before = &forge.Summary{}
	}
	f := facts{commits: map[forge.TaskID]string{}}
	for i := range events {
		f.take(&events[i], before, now)
	}
	for i := range f.faults {
		f.faults[i].name(before, now)
	}
	list = f.approvals(list)
	for i := range list {
		f.explain(&list[i], now)
	}
	list = append(f.faults, list...)
	for i := range list {
		list[i].cause.Bound()
	}
	return list
}

// approvals returns the changes without approvals that are none: an intent
// ceases to wait for one also when a person asks for changes, which is a change
// of its own, or edits it, after which it goes on.
func (f *facts) approvals(list []change) []change {
	if f.wished {
		return slices.DeleteFunc(list, func(c change) bool { return c.what == Approved })
	}
	for i := range list {
		if list[i].what == Approved && !f.approved {
			list[i].what = Resumed
		}
	}
	return list
}

// facts are those of one record.
type facts struct {
	// faults are changes of their own.
	faults []change
	// by is the person or system who asked for something, wished says that it
	// was for changes of what waited, approved that it was an approval.
	by        document.Cause
	wished    bool
	approved  bool
	questions []forge.Clarification
	// commits are those on the base branch, by task.
	commits map[forge.TaskID]string
}

// take takes the facts of an event.
func (f *facts) take(ev *forge.Event, before, now *forge.Summary) {
	switch m := ev.Message.(type) {
	case *forge.Result:
		if !before.Wants(m.Attempt) {
			return // it came too late, and decided nothing
		}
		if c, found := faultOf(m, now); found {
			c.at(ev)
			f.faults = append(f.faults, c)
		}
		f.questions = append(f.questions, questionsOf(m)...)
	case *forge.MergeEnded:
		f.merged(ev, m)
	case *forge.RequestChanges:
		f.by = document.Cause{By: document.Cut(ev.Actor), Via: through(ev)}
		c := change{what: ChangesRequested, cause: f.by}
		c.cause.Words = m.Words
		if id := madeAgain(m, before, now); id != "" {
			c.task = &document.TaskState{ID: id}
		}
		f.faults, f.wished = append(f.faults, c), true
	default:
		_, is := m.(*forge.Approve)
		f.approved = f.approved || is
		if ev.Anchor == "" && ev.Actor != "" {
			f.by = document.Cause{By: document.Cut(ev.Actor), Via: through(ev)}
		}
	}
}

// madeAgain returns the task whose change is made again because a person asked for that; empty if
// it is the plan, or several are. Where the wish names no task, it is the one that is under way
// since, and was not before. A wish whose command is held, as by a pause, is told without a task.
func madeAgain(m *forge.RequestChanges, before, now *forge.Summary) forge.TaskID {
	if m.Task != "" {
		return m.Task
	}
	var found []forge.TaskID
	for _, t := range now.Tasks {
		i := slices.IndexFunc(before.Tasks, func(b forge.TaskSummary) bool { return b.ID == t.ID })
		if makes := t.Step == forge.StepImplement || t.Step == forge.StepExecute; makes && i >= 0 && before.Tasks[i].Step != t.Step {
			found = append(found, t.ID)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// merged takes the facts of a merge: the commit, or the command that failed on
// the moved base branch.
func (f *facts) merged(ev *forge.Event, m *forge.MergeEnded) {
	if m.Result == nil {
		return
	}
	f.commits[m.Task] = m.Result.Commit
	if v := m.Result.Verify; v != nil && !v.Passed && m.Result.Outcome == forge.MergeVerifyFailed {
		told := document.Verified{Task: m.Task, Step: forge.StepMerge, Base: m.Result.Parent, PatchID: m.Result.PatchID}
		told.Add(v)
		c := fault(ChecksFailed, m.Task, document.Cause{Verify: &told})
		c.at(ev)
		f.faults = append(f.faults, c)
	}
}

// explain adds to a change the facts that it follows from.
func (f *facts) explain(c *change, now *forge.Summary) {
	switch c.what {
	case KindTaskDone:
		c.task.Commit = f.commits[c.task.ID]
	case Waiting:
		if now.Waiting != forge.WaitingClarification {
			return
		}
		for _, q := range f.questions {
			c.cause.Questions = append(c.cause.Questions, document.Clarification(q))
		}
	case Commented:
		c.cause = f.by
		c.cause.Comments = asked.CommentsOf(now.Comments)
	default:
		c.cause = f.by
	}
}

// through returns the gateway that the author of an event came through. Only
// such an event has an account.
func through(ev *forge.Event) string {
	if ev.Account == "" {
		return ""
	}
	return ev.Via
}

// faultOf returns the change that tells that a result finds fault with a task's change.
func faultOf(m *forge.Result, now *forge.Summary) (change, bool) {
	switch out := m.Output.(type) {
	case *forge.Review:
		if rejected(m.Attempt.Task, out, now) {
			r := document.ReviewOf(out)
			r.Attempt, r.Verdict = m.Attempt.Number, forge.VerdictRejected
			return fault(ChangesRequested, m.Attempt.Task, document.Cause{Review: &r}), true
		}
	case *forge.Rebase:
		if out.Verify != nil && !out.Verify.Passed && len(out.Conflicts) == 0 {
			v := document.VerifiedOf(m.Attempt.Task, m.Attempt.Step, out)
			return fault(ChecksFailed, m.Attempt.Task, document.Cause{Verify: &v}), true
		}
	default:
	}
	return change{}, false
}

// rejected reports whether a review has a change made again: by the reviewer's word, or
// because the rules do not take their approval for one, which the task's next step shows.
func rejected(task forge.TaskID, r *forge.Review, now *forge.Summary) bool {
	if r.Verdict == "" {
		return false // it asks for checks first
	}
	i := slices.IndexFunc(now.Tasks, func(t forge.TaskSummary) bool { return t.ID == task })
	again := i >= 0 && (now.Tasks[i].Step == forge.StepImplement || now.Tasks[i].Status == forge.TaskFailed)
	return r.Verdict == forge.VerdictRejected || again
}

// at fills in when the fact was decided on.
func (c *change) at(ev *forge.Event) {
	if c.cause.Review != nil {
		c.cause.Review.At = ev.At.UTC()
	}
	if c.cause.Verify != nil {
		c.cause.Verify.At = ev.At.UTC()
	}
}

// fault returns a change about a task.
func fault(what Kind, task forge.TaskID, cause document.Cause) change {
	return change{what: what, task: &document.TaskState{ID: task}, cause: cause}
}

// name fills in the title and the status of the task, as the summary has them
// now, or had them before.
func (c *change) name(before, now *forge.Summary) {
	if c.task == nil {
		return // it is about the plan, or about several
	}
	for _, s := range []*forge.Summary{before, now} {
		for _, t := range s.Tasks {
			if t.ID == c.task.ID {
				c.task.Title, c.task.Status = document.Cut(t.Title), t.Status
			}
		}
	}
}

// questionsOf returns the questions of a result.
func questionsOf(m *forge.Result) []forge.Clarification {
	switch out := m.Output.(type) {
	case *forge.Analysis:
		return out.Clarifications
	case *forge.Intake:
		return out.Clarifications
	case *forge.Implementation:
		if out.Blocked != nil {
			return []forge.Clarification{*out.Blocked}
		}
	default:
	}
	return nil
}
