package sim

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// rebase puts a change on the tip and verifies it, or reports the conflict.
func (w worker) rebase(c commit, cmd *forge.Command) *forge.Rebase {
	if conflicts := w.repo.conflicts(c); len(conflicts) > 0 {
		return &forge.Rebase{Conflicts: conflicts, Files: c.files}
	}
	n := w.repo.rebase(c, false)
	var rb *forge.Rebase
	if cmd.Rebase().VerifyInMerge && w.rng.IntN(4) > 0 { // otherwise it passed before, or something depends on it
		rb = &forge.Rebase{Base: n.parent, Head: n.id, Tree: "tree-" + n.id, PatchID: n.patch, Files: n.files, Unverified: true, Overlaps: w.overlaps(n)}
	} else {
		rb = w.candidate(n, c, cmd.Task.Checks, cmd.Rebase().Tried)
	}
	if cmd.Intent.Recipe != "" {
		rb.Landed = w.repo.since(c.parent)
	}
	return rb
}

// unchanged verifies the tip.
func (w worker) unchanged(checks []forge.Check) *forge.Rebase {
	tip := w.repo.tip()
	rb := &forge.Rebase{Base: tip, Head: tip, Tree: "tree-" + tip, Verify: &forge.VerifyReport{Passed: !w.chance(12), Command: "make test", Output: "it broke"}}
	w.check(rb, checks)
	return rb
}

// candidate verifies a commit where it stands, which was another one before it was rebased, and remembers its parent if it passes.
func (w worker) candidate(n, was commit, checks []forge.Check, tried []forge.CheckRun) *forge.Rebase {
	rb := &forge.Rebase{Base: n.parent, Head: n.id, Tree: "tree-" + n.id, PatchID: n.patch, Files: n.files}
	var passed bool
	meanwhile := w.repo.since(was.parent)
	if rb.Verify, passed = w.verify(rb.Tree, meanwhile, tried); verdict.Blame(rb.Verify, rb.Tree) == verdict.FaultOfBoth {
		rb.Landed = meanwhile
	}
	w.check(rb, checks)
	rb.Overlaps = w.overlaps(n)
	if passed {
		w.workers.verified[n.id] = n.parent
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
	head, report := w.repo.heads[merge.Head], (*forge.VerifyReport)(nil)
	if conflicts := w.repo.conflicts(head); len(conflicts) > 0 {
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeConflict, Files: conflicts}}
	}
	if (head.parent != w.repo.tip() || merge.Unverified) && !w.takes(c.Merge(), &head) {
		tree, known := w.repo.content(w.repo.tip()), []forge.CheckRun(nil)
		n := w.repo.rebase(head, w.chance(5))
		if found := c.Merge().Tried; facts.IsAbout(found, head.patch, tree, head.on(tree)) && verdict.FailedTwice(found.Verify.Trials, found.Tree) {
			known = facts.FailedTwice("tree-"+n.id, found)
		}
		rb := w.candidate(n, head, merge.Checks, known)
		rb.Verify = verdict.Strict(rb.Verify)
		switch {
		case !rb.Verify.Passed, verdict.Blame(rb.Verify, rb.Tree) == verdict.FaultOfChange, !w.workers.passed(rb.Head, merge.Checks):
			return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: rb.Verify, Candidate: rb}}
		case rb.PatchID != merge.PatchID:
			return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergePatchChanged, Candidate: rb}}
		}
		head, report = w.repo.heads[rb.Head], rb.Verify
	}
	if !w.wanted(c) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "nobody wants it any more"}}
	}
	if r := w.proposes(c, head); r != nil {
		return r
	}
	if r := w.refusal(head, head.id != merge.Head); r != nil {
		return r
	}
	if w.origin.Overtakes(w.rng, w.seed, w.faults) { // by what conflicts with nothing
		w.repo.main = append(w.repo.main, commit{id: w.repo.id(), files: []string{"outside"}, parent: w.repo.tip()})
		return &forge.Result{Output: &forge.MergeResult{Outcome: forge.MergeOvertaken}}
	}
	head.by = c.Attempt
	w.repo.push(head)
	r := w.mergedAs(&head)
	r.Verify = report
	return &forge.Result{Output: r}
}

// mergedAs returns the result of a merge that took place.
func (w *world) mergedAs(c *commit) *forge.MergeResult {
	return &forge.MergeResult{Outcome: forge.MergeDone, Commit: c.id, Parent: c.parent, PatchID: c.patch, Tree: w.repo.content(c.id), Unproven: c.why()}
}

// reconcile does an implementer's start: it reports the merges on the base branch
// again, in case it died before it could.
func (w *world) reconcile() {
	for i := range w.repo.main {
		if c := &w.repo.main[i]; c.task != "" {
			intent := forge.IntentID(string(c.task)[:len(c.task)-4])
			cmd := &command{Command: forge.Command{To: forge.Key{Project: project, Intent: intent}, Attempt: c.by}}
			w.report(cmd, &forge.Result{Output: w.mergedAs(c)})
		}
	}
}
