package sim

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// In every sixteenth world changes are merged by pull requests: see package outside. It takes nothing from the chances of the others.

// atForge are the actions of a world at its forge.
type atForge struct{ *world }

// proposes pushes a candidate to the branch of its task, where the change is merged by a pull request. It returns nil where it is pushed to
// the base branch.
func (w worker) proposes(c *forge.Command, head commit) *forge.Result {
	if c.Merge().Change.Pull == nil || w.outside == nil {
		return nil
	}
	head.by = c.Attempt
	w.repo.heads[head.id] = head
	branch, ok := w.outside.Push(c.Attempt.Task, head.id, head.parent, head.patch, c.Merge().Over)
	if !ok {
		at := &forge.PullRequest{Branch: branch, Base: "main", Head: w.outside.Head(branch)}
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeEdited, Branch: branch, BaseBranch: "main", Pull: at}}
	}
	return &forge.Result{Output: &forge.MergeResult{
		Outcome: forge.MergeProposed, Commit: head.id, Parent: head.parent, Tree: "tree-" + head.id, PatchID: head.patch, Branch: branch, BaseBranch: "main",
	}}
}

// step carries out a step of a gateway.
func (w atForge) step(c *forge.Command) *forge.Result {
	w.now = w.now.Add(time.Millisecond)
	return &forge.Result{Output: w.outside.Do(c, w.repo.tip(), w.now, w.mergedBy)}
}

// mergedBy puts the head of a pull request on the base branch, as a forge does: on the tip, wherever that is, unless it conflicts with it. It returns
// the commit there; empty if there is none.
func (w atForge) mergedBy(head string) string {
	n, known := w.repo.heads[head]
	if !known || w.repo.merged(n.task) != nil || len(w.repo.conflicts(n)) > 0 {
		return ""
	}
	if n.parent != w.repo.tip() {
		n.id, n.parent, n.unproven = w.repo.id(), w.repo.tip(), true
	}
	if !w.repo.push(n) {
		return ""
	}
	w.log("%s is on the base branch as %s", n.task, n.id)
	return n.id
}

// why says that a forge merged a change on another parent than the one that it was verified on; empty if it did not.
func (c commit) why() string {
	if c.unproven {
		return "its parent is another"
	}
	return ""
}

// forgeActs lets something happen at the forge, and a look arrive. It goes on for a while after the other faults stopped, since most changes are
// proposed then.
func (w atForge) forgeActs() {
	if !w.outside.Wild() {
		return
	}
	w.now = w.now.Add(time.Millisecond)
	w.outside.Act(w.repo.tip(), w.now, w.mergedBy, w.amend)
	w.outside.Meddle(w.amend)
	w.hears()
	w.adopts()
}

// amend makes a commit of a person on top of a head, which changes the same files in another way.
func (w atForge) amend(head string) string {
	n := w.repo.heads[head]
	n.id = w.repo.id()
	n.patch = "patch-" + n.id
	w.repo.heads[n.id] = n
	return n.id
}

// adopts sends the words of people who have a commit become a change, and returns false if there are none.
func (w atForge) adopts() bool {
	said := w.outside.Says()
	for _, ev := range said {
		w.send(ev)
	}
	return len(said) > 0
}

// taken puts a commit that a person pushed to the branch of its task on the tip, as a commit of ours.
func (w atForge) taken(c *forge.Command, a *forge.Adoption) *forge.Rebase {
	if at := w.outside.Head(a.Branch); at != a.Commit {
		return &forge.Rebase{Base: w.repo.tip(), Refusal: "it is elsewhere", Found: at}
	}
	if w.chance(10) {
		return &forge.Rebase{Base: w.repo.tip(), Refusal: "it changes nothing"}
	}
	n := w.repo.heads[a.Commit]
	n.id = w.repo.id()
	w.repo.heads[n.id] = n
	rb := worker(w).rebase(n, c)
	if !w.chance(15) { // an older implementer says no author
		rb.Author = "eve <eve@example.com>"
	}
	return rb
}

// hears puts the next look that arrives on the stream, and returns false if none does.
func (w atForge) hears() bool {
	r := w.outside.Heard()
	if r == nil {
		return false
	}
	w.looksTaken++
	w.inputs = append(w.inputs, &input{Event: forge.Event{ID: fmt.Sprintf("look/%d", w.looksTaken), To: r.Machine(), Message: r}})
	p := forge.As[*forge.PullRequest](r.Output)
	w.log("a look at %s: %s at %s, checks %v, reviews %v, blocked %q, behind %t", r.Attempt, p.State, p.Head, p.Checks, p.Reviews, p.Blocked, p.Behind)
	return true
}

// forgeCalms has the forge go on after the faults stopped, and returns false if nothing is left to do there.
func (w atForge) forgeCalms() bool {
	if w.outside == nil {
		return false
	}
	if w.outside.Wild() {
		w.forgeActs()
		return true
	}
	w.now = w.now.Add(time.Millisecond)
	return w.hears() || w.adopts() || w.outside.Calm(w.repo.tip(), w.now, w.mergedBy)
}

// checkPulls returns an error if a pull request ended otherwise than its task, or the checks of the forge ran too often.
func (w checker) checkPulls() error {
	return w.outside.End(len(w.repo.main), func(yield func(*forge.Record) bool) {
		for _, key := range w.keys {
			for i := range w.journal[key] {
				if !yield(&w.journal[key][i]) {
					return
				}
			}
		}
	})
}
