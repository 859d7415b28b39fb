// Package adoption finds the task whose change a commit on its pull request's branch may
// replace, when a person asks for that with retry --adopt (docs/adr/0134), and refuses the rest.
//
// Package flow calls Offered when it decides on such a retry. A commit can be adopted
// only if it was seen last at the head of a task's branch, so a person adopts what
// they looked at, and nothing that was pushed since. It changes no state.
package adoption

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Request is that of a person who has a commit become the change.
type Request struct {
	Intent forge.IntentID
	// Commit is the one that they name, by pull.LeastCommit of its digits at least.
	Commit string
	// Paused says that nothing of the intent goes on.
	Paused bool
}

// Offered returns the task whose branch was seen last at the commit. The error
// says why there is none, with the decision that goes with it.
func Offered(s *task.Set, w *Request) (*task.Task, forge.Decision, error) {
	t, decision, err := offered(s, w)
	if err == nil && w.Paused {
		decision, err = rule.Refuse("the intent is paused; resume it first: pfl-forge resume %s", w.Intent)
	}
	return t, decision, err
}

// offered finds the task.
func offered(s *task.Set, w *Request) (*task.Task, forge.Decision, error) {
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
