package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// MaxWishes bounds how often a change, or a plan, is made again in a run because people
// ask for that, at its pull request or where it waits for their approval. That is no
// failure of what was made, so it spends nothing else; it is bounded since a bot with
// a person's account would go on for ever.
const MaxWishes = 10

// Wished has the rules about people who ask for changes of a change that was made. There
// is one rule for all of them, the row ChangesWanted of the table, from three stages:
//
//	merging    at its pull request, where the forge says who may, see package pull
//	protected  where it waits for an approval
//	disputed   where a person is to decide between two reviewers
//
// It leads to implementing, in the session in which the change was made, and spends
// none of the times that a change may be made again after a rejection. What is made
// is verified and reviewed like any other, and waits for a person again if it has to.
type Wished struct{ *Task }

// again has the change made again, in the session in which it was made.
func (t Wished) again(x *Turn, feedback, detail string) {
	t.Feedback, t.Write = feedback, nil
	t.step(x, Input{On: ChangesWanted, Detail: detail})
}

// Take has a change that waits for a person made again with their words. No approval that was given
// before counts any more, whichever patch comes of it. The words stay with the task, so that its
// reviewer is told of them as well: the plan, by which it would be rejected, does not have them.
func (t Wished) Take(x *Turn, of *approval.Wished) {
	t.Wishes++
	t.Early++
	feedback := of.Words
	if t.Stage == Disputed {
		feedback += "\n\n" + Pair(t).texts()
		Said(t).dropQuestion(x)
	}
	// A person has taken sides, so the next disagreement is the first of another row.
	t.Cleared, t.Disputes, t.Failure = Clearance{}, 0, ""
	t.Wish = &forge.Wish{Person: of.Person, Words: of.Words}
	t.again(x, feedback, of.Line())
}

// Spends reports whether people have asked for changes of a task as often in this
// run as they may. Then another wish is refused where it waits for approval. At a
// pull request there is no one to be told, so the task fails there.
func Spends(t *Task) bool { return t.Wishes >= MaxWishes }

// Of returns the task of an id among some; all of them without an id.
func Of(list []*Task, id forge.TaskID) []*Task {
	return slices.DeleteFunc(list, func(t *Task) bool { return id != "" && t.ID != id })
}

// Named returns the changes that wait for a person and that a hash names: all those
// that wait for approval, as an approval names them, or the one that its reviewers
// disagree about, by its commit. There are none if it names something else.
func (s *Set) Named(hash string) []*Task {
	if list := s.At(Protected); len(list) > 0 && HashChanges(list) == hash {
		return list
	}
	return slices.DeleteFunc(s.At(Disputed), func(t *Task) bool { return !pull.Names(hash, t.Head) })
}

// Waits returns in words what waits for a person: what an approval names by its hash (a
// plan, a text or changes), and the changes that reviewers disagree about, by their commits.
func (s *Set) Waits(what, hash string) string {
	var list []string
	disputed := s.At(Disputed)
	if len(disputed) == 0 || s.Has(Protected) { // otherwise the plan is approved
		list = append(list, what+" "+hash)
	}
	for _, t := range disputed {
		list = append(list, fmt.Sprintf("commit %s of %s", pull.Short(t.Head), t.ID))
	}
	return strings.Join(list, ", ")
}
