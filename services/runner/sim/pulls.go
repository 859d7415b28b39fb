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
	branch, ok := w.outside.Push(c.Attempt.Task, head.id, head.parent, head.patch)
	if !ok {
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeEdited, Branch: branch, BaseBranch: "main"}}
	}
	return &forge.Result{Output: &forge.MergeResult{
		Outcome: forge.MergeProposed, Commit: head.id, Parent: head.parent, Tree: "tree-" + head.id, PatchID: head.patch, Branch: branch, BaseBranch: "main",
	}}
}

// step carries out a step of a gateway.
func (w atForge) step(c *forge.Command) *forge.Result {
	w.now = w.now.Add(time.Millisecond)
	return &forge.Result{Output: w.outside.Do(c, w.repo.tip(), w.now, w.landed)}
}

// landed puts the head of a pull request on the base branch, as a forge does: on the tip, wherever that is, unless it conflicts with it. It returns
// the commit there; empty if there is none.
func (w atForge) landed(head string) string {
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
	w.outside.Act(w.repo.tip(), w.now, w.landed, w.repo.id)
	w.hears()
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
	return w.hears() || w.outside.Calm(w.repo.tip(), w.now, w.landed)
}

// checkPulls returns an error if a pull request ended otherwise than its task, or the checks of the forge ran too often.
func (w checker) checkPulls() error {
	done, retries := map[forge.TaskID]bool{}, 0
	for _, key := range w.keys {
		for _, rec := range w.journal[key] {
			for _, ev := range rec.Events {
				switch m := ev.Message.(type) {
				case *forge.Retry, *forge.Resume, *forge.Cancel, *forge.Reject, *forge.LockFiles:
					retries++
				case *forge.Result:
					if out := forge.As[*forge.MergeResult](m.Output); out != nil && out.Outcome == forge.MergeDone {
						done[m.Attempt.Task] = true
					}
					if m.Failure() != nil {
						retries++ // a step that failed is begun again
					}
				default:
				}
			}
		}
	}
	return w.outside.End(len(w.repo.main), retries, func(t forge.TaskID) bool { return done[t] })
}
