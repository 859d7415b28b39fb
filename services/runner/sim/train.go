package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// train remembers the trials of merges.
type train struct {
	// passed are the trees that passed, each with that of its parent.
	passed map[[2]string]bool
	// stopped are the requests whose newest trial stopped.
	stopped map[string]bool
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
		w.workers.train.passed[[2]string{tree, rb.Tree}] = true
	}
	r.Candidate = rb
	return r
}

// takes puts a change on the tip, unverified, if a trial found that it passes there; otherwise it returns false.
func (w worker) takes(in forge.MergeInput, head *commit) bool {
	tree, found := w.repo.content(w.repo.tip()), in.Tried
	if found == nil || verdict.Failing(found.Verify) != "" || found.PatchID != head.patch || !w.workers.passed(found.Head, in.Change.Checks) {
		return false
	}
	if found.BaseTree != tree || found.Tree != head.on(tree) {
		return false
	}
	*head = w.repo.rebase(*head, false)
	w.workers.met[head.id] = w.workers.met[found.Head]
	return true
}

// checkTrain returns an error if a decision of the project puts a change on top of one that stopped, or has something
// tried although the project is paused.
func (w checker) checkTrain(rec *forge.Record) error {
	stopped := w.workers.train.stopped
	for i := range rec.Events {
		r := *cmp.Or(forge.As[*forge.Result](rec.Events[i].Message), &forge.Result{})
		in := *cmp.Or(forge.As[*forge.MergeResult](r.Output), &forge.MergeResult{})
		if f := in.Candidate; in.Outcome == forge.MergeTried && f != nil && (len(f.Conflicts) > 0 || verdict.Failing(f.Verify) != "") {
			stopped[fmt.Sprint(r.Attempt.Task, r.Attempt.Number)] = true
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Merge()
		if in.Trial && rec.Summary.Waiting == forge.WaitingPaused {
			return fmt.Errorf("%s is tried although the project is paused", c.Attempt)
		}
		if in.Trial {
			delete(stopped, fmt.Sprint(c.Attempt.Task, c.Attempt.Number))
		}
		for j := range in.Ahead {
			if a := &in.Ahead[j]; stopped[fmt.Sprint(a.Task, a.Number)] {
				return fmt.Errorf("%s is tried on top of %s, which has stopped", c.Attempt, a.Task)
			}
		}
	}
	return nil
}
