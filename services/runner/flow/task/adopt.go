package task

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// Adopting is about commits of another one on the branch of the task's pull request.
type Adopting struct {
	// Offer is the commit that the branch was seen at, while a person is asked
	// what becomes of it; nil otherwise.
	Offer *forge.Adoption
	// Taken is the commit that is being put on the tip, to become the change; nil if none is.
	Taken *forge.Adoption
	// Adopted is the commit that the change began with; nil if it is all the task's own.
	Adopted *forge.Adoption
}

// Taking has the rules about a commit of another one that a person has become the change. It
// is taken as it was seen and nothing else, verified on the tip, and reviewed anew: no answer
// that was given before counts any more. Until it is on the tip, the change is the one before.
//
//	edited            a person says adopt            it is on the tip
//	Offer ---------------> Taken ----------------------> Adopted --> reviewed, and proposed in its place
//	  ^                      |
//	  +--- it cannot be: moved, gone, a conflict, empty
type Taking struct{ *Task }

// offer keeps the commit that the branch is at, and reports whether a person may adopt it.
func (t Taking) offer(x *Turn, branch string, seen *forge.PullRequest) bool {
	if _, ok := x.Strategy.Table().Find(Held, Adopted); !ok || branch == "" || seen.Branch != branch && seen.Branch != "" {
		return false // of a goal the iterations are judged, and the branch may be another one by now
	}
	if !pull.Nameable(seen.Head) { // it is gone, or what was seen is no commit
		return false
	}
	t.Offer = &forge.Adoption{Commit: seen.Head, Branch: branch}
	return true
}

// advice says how the commit that is offered becomes the change.
func (t Taking) advice(x *Turn) string {
	commit := pull.Short(t.Offer.Commit)
	return fmt.Sprintf("To go on with commit %s, verified and reviewed anew: pfl-forge retry %s --adopt %s", commit, x.Intent.ID, commit)
}

// Adopt has the commit that the branch was seen at become the change, because a person says so.
func (t Taking) Adopt(x *Turn, by string) {
	t.Requests++ // what is told of the request before comes late
	t.Taken, t.Failure = &forge.Adoption{Commit: t.Offer.Commit, Branch: t.Offer.Branch, Number: t.Requests, Barred: []string{by}}, ""
	t.Offer = nil
	x.emit(TakeBack{Task: t.Task})
	t.step(x, Input{On: Adopted, Detail: strings.TrimSuffix(pull.Short(t.Taken.Commit)+" by "+by, " by ")})
}

// refused takes a worker's answer about the commit that is to be adopted, and reports
// whether the task waits for a person again. Otherwise the commit is the change.
func (t Taking) refused(x *Turn, rb *forge.Rebase) bool {
	a := t.Taken
	if a == nil {
		return false
	}
	why := rb.Refusal
	switch {
	case why != "":
	case len(rb.Conflicts) > 0: // made again it would not be that commit any more
		why = "it conflicts with the base branch in " + strings.Join(rb.Conflicts, ", ")
	case rb.Head == rb.Base:
		why = "all of it is on the base branch already"
	case rb.Author == "":
		why = "the implementer is of a version that cannot do that"
	}
	if t.Taken = nil; why == "" {
		before := t.Adopted // what is pushed on top of it has that commit as well
		t.Adopted = &forge.Adoption{Commit: a.Commit, Branch: a.Branch, Author: rb.Author, Number: a.Number}
		t.Adopted.Barred = pull.Barred(x.Policy.Approvals.NotRequester, a.Barred, t.Adopted, before)
		t.Candidate, t.Second, t.Cleared, t.Wish, t.Word = nil, nil, Clearance{}, nil, Word{}
		t.Disputes, t.Tried, t.TriedPatch, t.Write, t.Feedback = 0, nil, "", nil, ""
		t.Replica = ""
		t.Session.Start(x.Names, t.ID, x.Strategy.Step(Implementing)) // the one before knows other files
		return false
	}
	x.Correct("not adopted")
	why = fmt.Sprintf("commit %s cannot become the change: %s", pull.Short(a.Commit), why)
	when := "When the branch has what is to be adopted, or what was there before"
	if pull.Nameable(rb.Found) {
		t.Offer = &forge.Adoption{Commit: rb.Found, Branch: a.Branch}
		when = t.advice(x) + ". Otherwise"
	}
	t.step(x, Input{On: NotAdopted, Detail: why, Why: fmt.Sprintf("%s. %s: pfl-forge retry %s", why, when, x.Intent.ID)})
	return true
}

// Of returns the adoption that a command to rebase the task carries; nil for none.
func (t Taking) Of() *forge.Adoption {
	if t.Taken != nil {
		return t.Taken
	}
	return t.Adopted
}

// Authors returns the names of those who made the commits that changes under way
// began with, as these say, without some requesters, who may have adopted them.
func (s *Set) Authors(but []forge.Identity) (names []string) {
	for _, t := range s.Tasks {
		if !t.Ended() {
			names = append(names, pull.Authors(t.Adopted, but)...)
		}
	}
	return names
}
