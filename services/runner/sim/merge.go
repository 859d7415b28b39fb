package sim

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// rebase puts a change on the tip and verifies it, or reports the conflict.
func (w worker) rebase(c trunk.Commit, cmd *forge.Command) *forge.Rebase {
	if conflicts := w.repo.Conflicts(c); len(conflicts) > 0 {
		return &forge.Rebase{Conflicts: conflicts, Files: c.Files}
	}
	n := w.repo.Rebase(c, false)
	var rb *forge.Rebase
	if cmd.Rebase().VerifyInMerge && w.rng.IntN(4) > 0 { // otherwise it passed before, or something depends on it
		rb = &forge.Rebase{Base: n.Parent, Head: n.ID, Tree: "tree-" + n.ID, PatchID: n.Patch, Files: n.Files, Unverified: true, Overlaps: w.overlaps(n)}
	} else {
		rb = w.candidate(n, c, cmd.Task.Checks, cmd.Rebase().Tried)
	}
	if cmd.Intent.Recipe != "" {
		rb.Landed = w.repo.Since(c.Parent)
	}
	return rb
}

// unchanged verifies the tip.
func (w worker) unchanged(checks []forge.Check) *forge.Rebase {
	tip := w.repo.Tip()
	rb := &forge.Rebase{Base: tip, Head: tip, Tree: "tree-" + tip, Verify: &forge.VerifyReport{Passed: !w.chance(12), Command: "make test", Output: "it broke"}}
	w.check(rb, checks)
	return rb
}

// candidate verifies a commit where it stands, which was another one before it
// was rebased, and remembers its parent if it passes.
func (w worker) candidate(n, was trunk.Commit, checks []forge.Check, tried []forge.CheckRun) *forge.Rebase {
	rb := &forge.Rebase{Base: n.Parent, Head: n.ID, Tree: "tree-" + n.ID, PatchID: n.Patch, Files: n.Files}
	var passed bool
	meanwhile := w.repo.Since(was.Parent)
	tried = slices.DeleteFunc(slices.Clone(tried), func(r forge.CheckRun) bool { // those of another patch tell nothing of this one
		of, known := w.repo.Heads[strings.TrimPrefix(r.Tree, "tree-")]
		return known && of.Patch != n.Patch
	})
	if rb.Verify, passed = w.verify(rb.Tree, meanwhile, tried); verdict.Blame(rb.Verify, rb.Tree) == verdict.FaultOfBoth {
		rb.Landed = meanwhile
	}
	w.check(rb, checks)
	rb.Overlaps = w.overlaps(n)
	if passed {
		w.workers.verified[n.ID] = n.Parent
	}
	return rb
}

// merge moves the base branch, or reports why it cannot. As an implementer
// does, it looks at the very end whether the merge is still wanted.
func (w worker) merge(c *forge.Command) *forge.Result {
	merge := c.Merge().Change
	if w.chance(15) {
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeDirty, Files: merge.Files}}
	}
	if w.workers.train.crowded {
		w.pushed() // it takes long
	}
	head, report := w.repo.Heads[merge.Head], (*forge.VerifyReport)(nil)
	if conflicts := w.repo.Conflicts(head); len(conflicts) > 0 {
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeConflict, Files: conflicts}}
	}
	if (head.Parent != w.repo.Tip() || merge.Unverified) && !w.takes(c.Merge(), &head) {
		tree, known := w.repo.Content(w.repo.Tip()), []forge.CheckRun(nil)
		n := w.repo.Rebase(head, w.chance(5))
		if found := c.Merge().Tried; facts.IsAbout(found, head.Patch, tree, head.On(tree)) && verdict.FailedTwice(found.Verify.Trials, found.Tree) {
			known = facts.FailedTwice("tree-"+n.ID, found)
		}
		rb := w.candidate(n, head, merge.Checks, known)
		rb.Verify = verdict.Strict(rb.Verify)
		switch {
		case !rb.Verify.Passed, verdict.Blame(rb.Verify, rb.Tree) == verdict.FaultOfChange, !w.workers.passed(rb.Head, merge.Checks):
			return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: rb.Verify, Candidate: rb}}
		case rb.PatchID != merge.PatchID:
			return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergePatchChanged, Candidate: rb}}
		}
		head, report = w.repo.Heads[rb.Head], rb.Verify
	}
	if !w.wanted(c) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "nobody wants it any more"}}
	}
	if r := w.proposes(c, head); r != nil {
		return r
	}
	if r := w.refusal(head, head.ID != merge.Head); r != nil {
		return r
	}
	if w.origin.Overtakes(w.rng, w.seed, w.faults) { // by what conflicts with nothing
		w.repo.Main = append(w.repo.Main, trunk.Commit{ID: w.repo.NewID(), Files: []string{"outside"}, Parent: w.repo.Tip()})
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeOvertaken}}
	}
	head.By = c.Attempt
	w.repo.Push(head)
	r := w.mergedAs(&head)
	r.Verify = report
	return &forge.Result{Output: r}
}

// mergedAs returns the result of a merge that took place.
func (w *world) mergedAs(c *trunk.Commit) *forge.MergeResult {
	return &forge.MergeResult{Outcome: forge.MergeDone, Commit: c.ID, Parent: c.Parent, PatchID: c.Patch, Tree: w.repo.Content(c.ID), Unproven: c.Why()}
}

// reconcile does an implementer's start: it reports the merges on the base branch
// again, in case it died before it could.
func (w *world) reconcile() {
	for i := range w.repo.Main {
		if c := &w.repo.Main[i]; c.Task != "" {
			intent := forge.IntentID(string(c.Task)[:len(c.Task)-4])
			cmd := &command{Command: forge.Command{To: forge.Key{Project: project, Intent: intent}, Attempt: c.By}}
			w.report(cmd, &forge.Result{Output: w.mergedAs(c)})
		}
	}
}
