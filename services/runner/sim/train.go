package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/origins"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// train remembers the trials of merges.
type train struct {
	facts.Train

	// passed are the trees that passed, each with that of its parent.
	passed map[[2]string]bool
	// crowded says that merges take long, so that others wait behind them.
	crowded bool
	// alone says that many changes are verified by themselves, each with checks of its own,
	// beside batches of others: then one may fail while that right ahead is being tried.
	alone bool
	// disturbed counts the calls of disturb that did something.
	disturbed int
}

// crowd makes every sixteenth world one with long trains: many small changes that have
// little to do with each other, of which more are ready than are merged. It takes
// nothing from the chances of the others. Where the base branch is busy, there are as
// many. A third of those with batches have many changes that are verified alone.
func (w *world) crowd() {
	switch crowded := w.seed%16 == 5; {
	case crowded:
		w.workers.train.crowded, w.money.parallel, w.money.batch = true, 8, []int{0, 3, 8, 2}[w.seed/16%4]
		w.workers.train.alone = w.money.batch > 0 && w.seed/64%3 == 2
	case !origins.Busy(w.seed):
		return
	}
	for i := len(w.people.ids); i < 5; i++ {
		w.people.ids = append(w.people.ids, forge.IntentID(fmt.Sprintf("i%d", i)))
	}
	for i := len(w.repo.Files); i < 30; i++ {
		w.repo.Files = append(w.repo.Files, fmt.Sprintf("f%d", i))
	}
}

// disturb lets something happen to a long train, of which there are most after the
// faults stopped: a few times the server restarts, or a person pauses the project.
func (w *world) disturb() {
	t := &w.workers.train
	if !t.crowded || t.disturbed == 3 || w.rng.IntN(8) > 0 || !slices.ContainsFunc(w.commands, func(c *command) bool { return !c.acked && c.Merge().Trial }) {
		return
	}
	t.disturbed++
	if w.rng.IntN(2) == 0 {
		w.loseMemory()
	} else {
		w.send(forge.Event{To: forge.Key{Project: project}, Message: &forge.Pause{}})
	}
}

// isSlow reports whether a command takes long: in a crowded world a merge is
// begun when there is nothing else to do, and hardly ever before.
func (w *world) isSlow(c *command) bool {
	return w.workers.train.crowded && c.Attempt.Step == forge.StepMerge && !c.Merge().Trial
}

// try is the trial of a merge, as an implementer makes it. It says nothing about the base
// branch, and changes nothing on it. Those ahead count as far as they are not merged yet.
func (w worker) try(c *forge.Command) *forge.MergeResult {
	in := c.Merge()
	tree := w.repo.Content(w.repo.Tip())
	var stacked []string
	fits := func(n trunk.Commit) bool {
		return len(w.repo.Conflicts(n)) == 0 && !slices.ContainsFunc(n.Files, func(f string) bool { return slices.Contains(stacked, f) })
	}
	r := &forge.MergeResult{Outcome: forge.MergeTried}
	put := func(n trunk.Commit) forge.Rebase {
		return forge.Rebase{Base: "stack", BaseTree: tree, Head: n.ID, Tree: n.On(tree), PatchID: n.Patch, Files: n.Files}
	}
	for i := range in.Ahead {
		n := w.repo.Heads[in.Ahead[i].Head]
		if w.repo.Merged(n.Task) != nil {
			continue
		}
		if !fits(n) {
			return r
		}
		if i >= len(in.Ahead)-in.Batch {
			if rb := put(n); !facts.Ride(r, &rb, w.chance) {
				return r
			}
		}
		tree, stacked = n.On(tree), append(stacked, n.Files...)
	}
	n := w.repo.Heads[in.Change.Head]
	if r.Candidate = (&forge.Rebase{Conflicts: n.Files, Files: n.Files}); !fits(n) {
		return r
	}
	n.ID = w.repo.NewID()
	if w.chance(10) {
		n.Patch = "patch-" + n.ID
	}
	rb := put(n)
	// In a crowded world a trial fails also while nothing else goes wrong, so
	// that long trains have cars in doubt.
	broken := w.chance(6) || w.workers.train.crowded && w.rng.IntN(4) == 0
	rb.Verify = &forge.VerifyReport{Passed: !broken, Command: "make test", Output: "it broke"}
	w.check(&rb, in.Change.Checks)
	for _, f := range append(slices.Clone(r.Batch), rb) {
		w.workers.train.passed[[2]string{f.BaseTree, f.Tree}] = !broken || w.workers.train.passed[[2]string{f.BaseTree, f.Tree}]
	}
	r.Candidate = &rb
	return r
}

// takes puts a change on the tip, unverified, if a trial found that it passes
// there; otherwise it returns false.
func (w worker) takes(in forge.MergeInput, head *trunk.Commit) bool {
	tree, found := w.repo.Content(w.repo.Tip()), in.Tried
	if !facts.IsAbout(found, head.Patch, tree, head.On(tree)) ||
		verdict.Failing(found.Verify) != "" || !w.workers.passed(found.Head, in.Change.Checks) {
		return false
	}
	*head = w.repo.Rebase(*head, false)
	w.workers.met[head.ID] = w.workers.met[found.Head]
	return true
}
