package task

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
)

// maxAsked bounds how often the agent of a task may say in one run that it is blocked. After
// that what it committed counts, as if it had said nothing.
const maxAsked = 3

// Spent has the counters of a run that have a bound.
type Spent struct {
	// Rejections counts how often the change had to be made again: it was rejected, empty or
	// did not verify.
	Rejections int
	// Merges counts the merges that were asked for.
	Merges int
	// Wishes counts how often people asked for changes, Early those of them
	// that came before its merge was asked for.
	Wishes, Early int
	// Asked counts the questions of agents that were blocked.
	Asked int
	// Reds counts in a row how often the change failed because the base branch does.
	Reds int
	// RedAt is the tip that was found red, and RedBy the command that fails there.
	RedAt, RedBy string
	// Tried are the trials of the newest change that did not pass at once.
	Tried []forge.CheckRun
	// TriedPatch is the patch id of that change.
	TriedPatch string
	// Round is about two changes of which the better one goes on.
	Round Round
}

// Word holds the newest that the agent of a task said beside its commits.
type Word struct {
	// Answered says that the next attempt goes on with a person's answer.
	Answered bool
	// NothingToDo is the claim of the newest attempt that the base meets the task already;
	// empty if it made none.
	NothingToDo string
}

// Said decides on the words of the agent of a task, beside its commits. The methods stand on a
// type of their own, which has no state.
type Said struct{ *Task }

// Blocked takes a question without whose answer the agent of an attempt cannot go on, and
// reports whether a person is asked. What the attempt did is kept, committed or not, and the
// attempt does not count.
func (t Said) Blocked(x *Turn, step forge.Step, q *forge.Clarification) bool {
	if q == nil {
		return false
	}
	if t.Asked >= maxAsked {
		x.Correct("blocked again")
		return false
	}
	t.Asked++
	asked := *q
	asked.Task, asked.Answer, asked.Param = t.ID, nil, ""
	x.Intent.Clarifications = append(slices.Clip(x.Intent.Clarifications), asked)
	t.Uncount(step)
	x.Correct("blocked")
	why := "its agent asks: " + asked.Question
	t.step(x, Input{On: Blocked, Detail: cause.Gist(asked.Question), Why: why})
	return true
}

// AnsweredBy goes on with the answer of a person: the same session, in the tree as the attempt
// left it.
func (t Said) AnsweredBy(x *Turn, step forge.Step) {
	t.Failure = ""
	t.Word.Answered, t.Continue = true, true
	t.Again(x, step)
}

// dropQuestion takes back the question that a task has asked, if it is not answered.
func (t Said) dropQuestion(x *Turn) {
	x.Intent.Clarifications = slices.DeleteFunc(slices.Clone(x.Intent.Clarifications), func(c forge.Clarification) bool {
		return c.Task == t.ID && c.Answer == nil
	})
}

// claimed takes the claim of an attempt that committed nothing: that the base meets the task
// already. A review of the base decides.
func (t Said) claimed(x *Turn, claim string) {
	t.Word.NothingToDo, t.Candidate = claim, nil
	t.step(x, Input{On: NothingToDo})
}

// confirmed ends a task without a commit, because a review of the base agrees that it meets
// the task already.
func (t Said) confirmed(x *Turn) {
	why := "nothing had to be changed: " + t.Word.NothingToDo
	t.step(x, Input{On: Unchanged, Detail: cause.Gist(t.Word.NothingToDo), Why: why})
}

// NothingToDo returns why no task of an intent that is done made a commit; empty if one did, or
// did not get done.
func (s *Set) NothingToDo() (why string) {
	for _, t := range s.Tasks {
		if t.Stage != Done || t.Word.NothingToDo == "" {
			return ""
		}
		why = t.Failure
	}
	return why
}
