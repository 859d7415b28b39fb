// Package adoption says which change of an intent a person may have a commit of another one become (docs/adr/0134), and refuses the rest.
package adoption

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Wish is that of a person who has a commit become the change.
type Wish struct {
	Intent forge.IntentID
	// Commit is the one that they name, by pull.LeastCommit of its digits at least.
	Commit string
	// By is the person.
	By string
	// Paused says that nothing of the intent goes on.
	Paused bool
	// Bound says that the person approved the plan, and that the approval is void if they ask for what is done.
	Bound bool
}

// Offered returns the task whose branch was seen last at the commit. The error says why there is none, or why this person may not
// adopt it, with the decision that goes with it. Whoever adopts says what is done, as those do who ask for changes: a merge by an
// approval of theirs could not be proven.
func Offered(s *task.Set, w *Wish) (*task.Task, forge.Decision, error) {
	t, decision, err := offered(s, w)
	switch {
	case err != nil:
		return nil, decision, err
	case w.Paused:
		decision, err = rule.Refuse("the intent is paused; resume it first: pfl-forge resume %s", w.Intent)
	case w.Bound, reliesOn(s, w.By, t):
		const why = "%q approved the plan, or another change of the intent; another person has to adopt the commit (policy.approvals.not_requester)"
		decision, err = rule.Refuse(why, w.By)
	}
	return t, decision, err
}

// offered finds the task.
func offered(s *task.Set, w *Wish) (*task.Task, forge.Decision, error) {
	names := func(a *forge.Adoption) bool { return a != nil && pull.Names(w.Commit, a.Commit) }
	var seen []string
	for _, t := range s.Tasks {
		switch {
		case names(t.Taken):
			d, err := rule.Ignore("commit %s is being put on the base branch already", pull.Short(w.Commit))
			return nil, d, err
		case t.Stage != task.Held || t.Offer == nil:
			continue
		case names(t.Offer):
			return t, forge.Applied, nil
		}
		seen = append(seen, fmt.Sprintf("%s, the branch of %s, was seen at commit %s", t.Offer.Branch, t.ID, pull.Short(t.Offer.Commit)))
	}
	return nil, forge.Refused, pull.NotOffered(w.Intent, w.Commit, seen)
}

// reliesOn reports whether a person approved a change under way, other than that of one task, whose approval would be void if they asked
// for what is done. That of the task's own change is over once a commit is adopted.
func reliesOn(s *task.Set, by string, but *task.Task) bool {
	return slices.ContainsFunc(s.Tasks, func(t *task.Task) bool { return t != but && !t.Ended() && t.Cleared.By.Voids(by) })
}
