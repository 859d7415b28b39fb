package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
)

// The words of forge.BestOfTwo.When.
const (
	// whenComplex has two changes made of a task of high complexity.
	whenComplex = "complex"
	// whenRejected has two made after the first setback.
	whenRejected = "rejected"
)

// Round is the making of two changes for one task, one after the other, of
// which one goes on. A run has at most one: it is part of Spent.
type Round struct {
	// Begun says that there is one, or was.
	Begun bool
	// Over says that one of the two was chosen, or that the round was broken off.
	Over bool
	// Feedback is the feedback that both are made with.
	Feedback string
	// From is the number of the implementation that the round begins with.
	From int
	// First is set aside while the second is made; nil before and after.
	First *Aside
	// Second says that the task works on the second, or goes on with it.
	Second bool
	// Lost are the first and last number of the implementations of the one that
	// does not go on, or, before that is decided, of the one set aside. Whoever
	// works on the other does not hear of their reviews.
	Lost [2]int
}

// Aside is the first of two changes with all that is known of it.
type Aside struct {
	// Trial has the facts about it.
	Trial Trial
	// At is the stage in which it came to its end.
	At Stage
	// In leads on from there once it is chosen.
	In Input
	// Base and Head are its commits.
	Base, Head string
	// Change is it on the base branch's tip, verified there; nil if it did not get there.
	Change *forge.Rebase
	// Session is the session that it was made in.
	Session session.Session
	// Until is the number of the last implementation of it.
	Until int
	// Answered and Policy are those of Seconded.
	Answered forge.Reviewer
	Policy   string
	// Tried and TriedPatch are those of Spent.
	Tried      []forge.CheckRun
	TriedPatch string
	// Adopted is the commit of another one that it began with; nil if there is none.
	Adopted *forge.Adoption
}

// Reached is how far one of two changes came.
type Reached int

// How far it can come, the least first.
const (
	// Out cannot go on: it conflicts, or its agent is blocked, gave up or has no budget.
	Out Reached = iota
	// Nowhere is an attempt without a change.
	Nowhere
	// Unverified failed the verify commands.
	Unverified
	// Refused passed them, and was rejected.
	Refused
	// Accepted was approved by all reviewers that it takes.
	Accepted
)

// words returns it for people.
func (r Reached) words() string {
	return [...]string{"cannot go on", "changes nothing", "does not verify", "is rejected", "is approved"}[r]
}

// Trial has the facts about one of two changes, and no opinion.
type Trial struct {
	Reached Reached
	// Met counts the requirements that its newest review has resolved evidence for.
	Met int
	// Guarded counts the parts of it that only a person may approve.
	Guarded int
	// Files counts the paths that it touches.
	Files int
}

// Choose reports whether the second of two changes goes on, and why. The first
// does where nothing tells them apart.
func Choose(first, second *Trial) (two bool, why string) {
	say := func(words string, a, b any) string { return fmt.Sprintf(words, a, b) }
	files := func(n int) string { return rule.Count(n, "file") }
	for _, c := range []struct {
		order int
		why   string
	}{
		{cmp.Compare(second.Reached, first.Reached), say("the first %s, the second %s", first.Reached.words(), second.Reached.words())},
		{cmp.Compare(second.Met, first.Met), say("of the requirements the first meets %d, the second %d", first.Met, second.Met)},
		{cmp.Compare(first.Guarded, second.Guarded), say("a person has to approve %d parts of the first, %d of the second", first.Guarded, second.Guarded)},
		{cmp.Compare(first.Files, second.Files), say("the first changes %s, the second %s", files(first.Files), files(second.Files))},
	} {
		if c.order != 0 {
			return c.order > 0, c.why
		}
	}
	return false, "nothing tells them apart, so the first"
}

// Best has two changes made for a task, and one of them go on. The methods
// stand on a type of their own, which has no state.
type Best struct{ *Task }

// begin begins the round of a task before its change is made. Where no agent
// makes it there is none: a script makes the same change again.
func (t Best) begin(x *Turn, when string) {
	_, ordinary := x.Strategy.(Change)
	if !ordinary || t.Round.Begun || t.Write != nil || x.Intent.Recipe != "" || !slices.Contains(x.Policy.BestOfTwo.When, when) {
		return
	}
	t.Round = Round{Begun: true, From: t.Implement.Number + 1}
	if when == whenRejected {
		t.Round.Feedback = t.Feedback
	}
}

// takes ends one of the two in place of the row for an event, and reports
// whether it did. Other events follow the table as ever.
func (t Best) takes(x *Turn, in *Input) bool {
	if !t.Round.Begun || t.Round.Over {
		return false
	}
	reached, end := t.reached(in.On)
	switch {
	case t.Stage == Disputed || in.On == DisagreedAgain:
		// A person decides about this one, and about no other.
		t.breakOff()
		return false
	case !end:
		return false
	case t.Round.First == nil:
		t.second(x, reached, in)
	default:
		t.choose(x, reached, in)
	}
	return true
}

// reached returns how far the change of this moment came with what happened,
// and whether it is the end of it.
func (t Best) reached(on On) (r Reached, end bool) {
	second := t.Round.First != nil
	switch on {
	case Nothing:
		return Nowhere, t.Stage == Implementing
	case VerifyFailed:
		return Unverified, t.Stage == Rebasing
	case Rejected, Disagreed:
		if t.Word.NothingToDo != "" { // the claim was rejected, and there is no change
			return Nowhere, true
		}
		return Refused, t.Stage == Reviewing
	case Approved, Guarded:
		return Accepted, t.Stage == Reviewing
	case Conflict, Combination:
		// A conflict ends the second change. The first one waits for the file
		// lock, as a single change does.
		return Out, second && t.Stage == Rebasing
	case NotNeeded, NothingToDo, Blocked, NoBudget, GaveUp:
		return Out, second
	default:
		return Out, false
	}
}

// trial returns the facts about the change of this moment.
func (t Best) trial(x *Turn, reached Reached) Trial {
	trial := Trial{Reached: reached}
	if c := t.Candidate; c != nil && c.Head == t.Head && reached >= Unverified {
		trial.Files, trial.Guarded = len(c.Files), len(protectedFiles(x.Policy.ProtectedPaths, c))
	}
	if reached < Refused {
		return trial
	}
	pair := Pair(t).Last()
	for i := range pair {
		met := 0
		for k := range pair[i].Claims {
			if pair[i].Claims[k].Counts() {
				met++
			}
		}
		if i == 0 || met < trial.Met {
			trial.Met = met
		}
	}
	return trial
}

// second sets the first of the two aside, and has the second made: from the
// tip, by an agent that knows nothing of the first.
func (t Best) second(x *Turn, reached Reached, in *Input) {
	t.Round.First = &Aside{
		Trial: t.trial(x, reached), At: t.Stage, In: *in, Base: t.Base, Head: t.Head, Change: t.Candidate, Session: t.Session,
		Until: t.Implement.Number, Answered: t.Answered, Policy: t.Policy, Tried: t.Tried, TriedPatch: t.TriedPatch,
		Adopted: t.Adopted,
	}
	t.Round.Second, t.Round.Lost = true, [2]int{t.Round.From, t.Implement.Number}
	t.Second, t.Inquiry, t.Disputes, t.Tried, t.Word = nil, Inquiry{}, 0, nil, Word{}
	t.Fresh, t.Continue, t.Feedback = true, false, t.Round.Feedback
	detail := fmt.Sprintf("the first (%s) %s; a second one is made", named(t.Implement.Number, t.Head), reached.words())
	if by := Escalation(t).Stronger(x.Policy, x.Intent, forge.StepImplement); by != nil {
		detail += " " + described(by)
	}
	x.Adjust(rule.BestOfTwo, t.ID, detail)
	t.Session.Begun = true // so that another one begins
	t.implement(x)
}

// choose ends the round, and goes on with one of the two as if there had been no other.
func (t Best) choose(x *Turn, reached Reached, in *Input) {
	first, second := t.Round.First, t.trial(x, reached)
	two, why := Choose(&first.Trial, &second)
	if reached == Out {
		why += ": " + rule.FirstLine(cmp.Or(in.Why, in.Detail, string(in.On)))
	}
	kept := [2]string{"first", named(first.Until, first.Head)}
	made := t.Head
	if t.Fresh || made == t.Base {
		made = "" // it has no commit
	}
	other := named(t.Implement.Number, made)
	if two {
		kept, other = [2]string{"second", other}, kept[1]
	}
	x.Adjust(rule.Chosen, t.ID, fmt.Sprintf("the %s (%s), and not %s: %s", kept[0], kept[1], other, why))
	if !two {
		lost := [2]int{first.Until + 1, t.Implement.Number}
		next := first.In
		in, t.Stage = &next, first.At
		t.back()
		t.Round.Lost = lost
	}
	t.Round.First, t.Round.Over = nil, true
	if in.On == Approved || in.On == Guarded {
		t.Approved(x) // which looks once more whether a person has to approve it
		return
	}
	t.step(x, *in)
}

// back takes the first of the two from aside. Its reviews become the newest
// ones, since those are the ones that a verdict is made of.
func (t Best) back() {
	f := t.Round.First
	f.Session.Number = max(f.Session.Number, t.Session.Number) // no two sessions have one name
	t.Base, t.Head, t.Candidate, t.Session = f.Base, f.Head, f.Change, f.Session
	t.Answered, t.Policy, t.Tried, t.TriedPatch = f.Answered, f.Policy, f.Tried, f.TriedPatch
	t.Adopted = f.Adopted
	t.Second, t.Inquiry, t.Disputes, t.Word = nil, Inquiry{}, 0, Word{}
	t.Fresh, t.Continue, t.Replica, t.Failure = false, false, "", ""
	t.Reds, t.Round.Second = 0, false
	var list, own []forge.Review
	for _, rv := range t.Reviews {
		if rv.Attempt >= t.Round.From && rv.Attempt <= f.Until {
			own = append(own, rv)
		} else {
			list = append(list, rv)
		}
	}
	t.Reviews = slices.Concat(list, own)
}

// breakOff ends a round without a choice. The task goes on with what it works on.
func (t Best) breakOff() { t.Round.First, t.Round.Over = nil, true }

// reset puts a task that ended while its second change was made back to the
// first: a retry goes on with that.
func (t Best) reset() {
	if f := t.Round.First; f != nil {
		t.back()
		t.Feedback = f.In.Feedback
	}
}

// VisibleReviews returns the reviews that whoever works on the change of this
// moment, or reviews it, gets: none of the other one.
func (t Best) VisibleReviews() []forge.Review {
	lost := t.Round.Lost
	if lost == [2]int{} {
		return t.Reviews
	}
	return slices.DeleteFunc(slices.Clone(t.Reviews), func(rv forge.Review) bool { return rv.Attempt >= lost[0] && rv.Attempt <= lost[1] })
}

// named returns a change as people find it: by the attempt that it was made in,
// whose transcript is kept, and by its commit, which is kept as well.
func named(attempt int, head string) string {
	return strings.TrimSuffix(fmt.Sprintf("implement %d, %.10s", attempt, head), ", ")
}
