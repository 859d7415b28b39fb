package sim

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
)

// In every sixteenth world changes are merged by pull requests: see package
// outside. It takes nothing from the chances of the others.

// atForge are the actions of a world at its forge.
type atForge struct{ *world }

// proposes pushes a candidate to the branch of its task, where the change is
// merged by a pull request. It returns nil where it is pushed to the base branch.
func (w worker) proposes(c *forge.Command, head trunk.Commit) *forge.Result {
	if c.Merge().Change.Pull == nil || w.outside == nil {
		return nil
	}
	head.By = c.Attempt
	w.repo.Heads[head.ID] = head
	branch, ok := w.outside.Push(c.Attempt.Task, head.ID, head.Parent, head.Patch, c.Merge().Over)
	if !ok {
		at := &forge.PullRequest{Branch: branch, Base: "main", Head: w.outside.Head(branch)}
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeEdited, Branch: branch, BaseBranch: "main", Pull: at}}
	}
	return &forge.Result{Output: &forge.MergeResult{
		Outcome: forge.MergeProposed, Commit: head.ID, Parent: head.Parent, Tree: "tree-" + head.ID, PatchID: head.Patch, Branch: branch, BaseBranch: "main",
	}}
}

// step carries out a step of a gateway.
func (w atForge) step(c *forge.Command) *forge.Result {
	w.now = w.now.Add(time.Millisecond)
	return &forge.Result{Output: w.outside.Do(c, w.repo.Tip(), w.now, w.mergedBy)}
}

// mergedBy puts the head of a pull request on the base branch, as a forge does:
// on the tip, wherever that is, unless it conflicts with it. It returns the
// commit there; empty if there is none.
func (w atForge) mergedBy(head string) string {
	n, known := w.repo.Heads[head]
	if !known || w.repo.Merged(n.Task) != nil || len(w.repo.Conflicts(n)) > 0 {
		return ""
	}
	if n.Parent != w.repo.Tip() {
		n.ID, n.Parent, n.Unproven = w.repo.NewID(), w.repo.Tip(), true
	}
	if !w.repo.Push(n) {
		return ""
	}
	w.log("%s is on the base branch as %s", n.Task, n.ID)
	return n.ID
}

// forgeActs lets something happen at the forge, and a look arrive. It goes on for
// a while after the other faults stopped, since most changes are proposed then.
func (w atForge) forgeActs() {
	if !w.outside.Wild() {
		return
	}
	w.now = w.now.Add(time.Millisecond)
	w.outside.Act(w.repo.Tip(), w.now, w.mergedBy, w.amend)
	w.outside.Meddle(w.amend)
	w.takeLook()
	w.adopts()
}

// amend makes a commit of a person on top of a head, which changes the same files in another way.
func (w atForge) amend(head string) string {
	n := w.repo.Heads[head]
	n.ID = w.repo.NewID()
	n.Patch = "patch-" + n.ID
	w.repo.Heads[n.ID] = n
	return n.ID
}

// adopts sends the words of people who have a commit become a change, and
// returns false if there are none.
func (w atForge) adopts() bool {
	said := w.outside.Says()
	for _, ev := range said {
		w.send(ev)
	}
	return len(said) > 0
}

// taken puts a commit that a person pushed to the branch of its task on the
// tip, as a commit of ours.
func (w atForge) taken(c *forge.Command, a *forge.Adoption) *forge.Rebase {
	if at := w.outside.Head(a.Branch); at != a.Commit {
		return &forge.Rebase{Base: w.repo.Tip(), Refusal: "it is elsewhere", Found: at}
	}
	if w.chance(10) {
		return &forge.Rebase{Base: w.repo.Tip(), Refusal: "it changes nothing"}
	}
	n := w.repo.Heads[a.Commit]
	n.ID = w.repo.NewID()
	w.repo.Heads[n.ID] = n
	rb := worker(w).rebase(n, c)
	if !w.chance(15) { // an older implementer says no author
		rb.Author = "eve <eve@example.com>"
	}
	return rb
}

// takeLook puts the next look that arrives on the stream, and returns false if none does.
func (w atForge) takeLook() bool {
	r := w.outside.NextLook()
	if r == nil {
		return false
	}
	w.looksTaken++
	w.inputs = append(w.inputs, &input{Event: forge.Event{ID: fmt.Sprintf("look/%d", w.looksTaken), To: r.Machine(), Message: r}})
	p := forge.As[*forge.PullRequest](r.Output)
	w.log("a look at %s: %s at %s, checks %v, reviews %v, blocked %q, behind %t", r.Attempt, p.State, p.Head, p.Checks, p.Reviews, p.Blocked, p.Behind)
	return true
}

// forgeCalms has the forge go on after the faults stopped, and returns false if
// nothing is left to do there.
func (w atForge) forgeCalms() bool {
	if w.outside == nil {
		return false
	}
	if w.outside.Wild() {
		w.forgeActs()
		return true
	}
	w.now = w.now.Add(time.Millisecond)
	return w.takeLook() || w.adopts() || w.outside.Calm(w.repo.Tip(), w.now, w.mergedBy)
}

// checkPulls returns an error if a pull request ended otherwise than its task,
// or the checks of the forge ran too often.
func (w checker) checkPulls() error {
	return w.outside.End(len(w.repo.Main), func(yield func(*forge.Record) bool) {
		for _, key := range w.keys {
			for i := range w.journal[key] {
				if !yield(&w.journal[key][i]) {
					return
				}
			}
		}
	})
}
