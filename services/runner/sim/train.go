package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// passedOn is a tree that passed the verify commands on a parent.
type passedOn struct{ parent, tree string }

// train is what the simulator keeps of the trials of merges.
type train struct {
	// passed has what trials found.
	passed map[passedOn]bool
	// stopped are the requests whose newest trial stopped.
	stopped map[forge.Attempt]bool
}

// content returns the tree of a commit of the base branch: what was put onto it so far, whatever the commits.
func (r *repo) content(id string) string {
	var tree string
	for _, c := range r.main {
		tree = c.on(tree)
		if c.id == id {
			break
		}
	}
	return tree
}

// on returns the tree of a commit on a tree.
func (c commit) on(tree string) string {
	if c.task == "" {
		return tree + " " + c.id
	}
	return tree + " " + c.patch
}

// try verifies a change on top of those ahead of it, as far as these are not merged yet.
func (w worker) try(c *forge.Command) *forge.MergeResult {
	in := c.Merge()
	tree := w.repo.content(w.repo.tip())
	var stacked []string
	fits := func(n commit) bool {
		return len(w.repo.conflicts(n)) == 0 && !slices.ContainsFunc(n.files, func(f string) bool { return slices.Contains(stacked, f) })
	}
	r := &forge.MergeResult{Outcome: forge.MergeTried}
	for i := range in.Ahead {
		n := w.repo.heads[in.Ahead[i].Head]
		if w.repo.merged(n.task) != nil {
			continue
		}
		if !fits(n) {
			return r
		}
		tree, stacked = n.on(tree), append(stacked, n.files...)
	}
	n := w.repo.heads[in.Change.Head]
	if !fits(n) {
		r.Candidate = &forge.Rebase{Conflicts: n.files, Files: n.files}
		return r
	}
	n.id = w.repo.id()
	if w.chance(10) {
		n.patch = "patch-" + n.id
	}
	rb := &forge.Rebase{Base: "stack", BaseTree: tree, Head: n.id, Tree: n.on(tree), PatchID: n.patch, Files: n.files}
	rb.Verify = &forge.VerifyReport{Passed: !w.chance(6), Command: "make test", Output: "it broke"}
	w.check(rb, in.Change.Checks)
	if rb.Verify.Passed {
		w.workers.train.passed[passedOn{tree, rb.Tree}] = true
	}
	r.Candidate = rb
	return r
}

// takes reports whether a merge takes what a trial found, in place of verifying on the tip.
func (w worker) takes(in *forge.MergeInput, head commit) bool {
	tree, found := w.repo.content(w.repo.tip()), in.Tried
	if found == nil || verdict.Failing(found.Verify) != "" || found.PatchID != head.patch || !w.workers.passed(found.Head, in.Change.Checks) {
		return false
	}
	return found.BaseTree == tree && found.Tree == head.on(tree)
}

// taken puts a change on the tip for which a finding holds.
func (w worker) taken(in *forge.MergeInput, head commit) commit {
	n := w.repo.rebase(head, false)
	w.workers.met[n.id] = w.workers.met[in.Tried.Head]
	return n
}

// verifiedBefore reports whether a commit of the base branch passed on a tree like that of its parent.
func (w *world) verifiedBefore(c commit) bool {
	tree := w.repo.content(c.parent)
	return w.workers.train.passed[passedOn{tree, c.on(tree)}]
}

// checkTrain returns an error if a decision of the project puts a change on top of one that stopped, or has something
// tried although the project is paused.
func (w checker) checkTrain(rec *forge.Record) error {
	stopped := w.workers.train.stopped
	for i := range rec.Events {
		r := forge.As[*forge.Result](rec.Events[i].Message)
		if r == nil {
			continue
		}
		in := forge.As[*forge.MergeResult](r.Output)
		if in == nil || in.Outcome != forge.MergeTried || in.Candidate == nil {
			continue
		}
		if f := in.Candidate; len(f.Conflicts) > 0 || verdict.Failing(f.Verify) != "" {
			stopped[request(r.Attempt)] = true
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Merge()
		if !in.Trial {
			continue
		}
		if rec.Summary.Waiting == forge.WaitingPaused {
			return fmt.Errorf("%s is tried although the project is paused", c.Attempt)
		}
		delete(stopped, request(c.Attempt))
		for j := range in.Ahead {
			if a := &in.Ahead[j]; stopped[forge.Attempt{Task: a.Task, Step: forge.StepMerge, Number: a.Number}] {
				return fmt.Errorf("%s is tried on top of %s, which has stopped", c.Attempt, a.Task)
			}
		}
	}
	return nil
}

// request returns the attempt without its claim, which is the request that it is made for.
func request(a forge.Attempt) forge.Attempt {
	a.Claim = 0
	return a
}
