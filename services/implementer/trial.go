package implementer

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
)

// try carries out a trial of a merge: it verifies the change on top of those that are to be merged before it,
// and merges none of them. What it finds is a hint, which the merge takes where the trees are the same. So it
// needs no lock, keeps nothing, and may be wrong about what will be merged.
func (i *Implementer) try(ctx context.Context, j *jobs.Job) error {
	wanted, err := i.bus.Journal.Wanted(ctx, j.Command.To, j.Command.Attempt)
	if err != nil {
		return err
	}
	if !wanted {
		return agent.Fail(forge.FailKilled, "the trial was cancelled")
	}
	in := j.Command.Merge()
	// Without a candidate the result says that the changes ahead do not go together. That is nothing about
	// this change: the trial of the one that is in conflict says which it is.
	r := &forge.MergeResult{Outcome: forge.MergeTried}
	for n := range in.Ahead {
		if fits, err := stack(ctx, j, &in.Ahead[n]); err != nil {
			return err
		} else if !fits {
			j.Result.Output = r
			return nil
		}
	}
	if j.Config, err = j.Repository.Config(ctx, j.Tip); err != nil { // a change ahead may alter it
		return err
	}
	base, head, err := change(ctx, j, in.Change.Base, in.Change.Head)
	if err != nil {
		return err
	}
	r.Candidate, err = i.findOnTip(ctx, j, base, head)
	j.Result.Output = r
	return err
}

// stack takes a change to be on the base branch: the tip of the job is the change on it. It returns false if they
// are in conflict.
func stack(ctx context.Context, j *jobs.Job, ahead *forge.QueueMerge) (bool, error) {
	base, err := jobs.OID("ahead", ahead.Base)
	if err != nil {
		return false, err
	}
	head, err := jobs.OID("ahead", ahead.Head)
	if err != nil {
		return false, err
	}
	if err := j.Bring(ctx, ahead.Task.Intent(), base, head); err != nil {
		return false, err
	}
	// As the merge does: the same commits give the same tree, whoever puts them together.
	if head, err = j.Store.Squash(ctx, base, head, nil); err != nil {
		return false, err
	}
	got, err := j.Store.Rebase(ctx, base, head, j.Tip)
	if _, ok := errors.AsType[*git.ConflictError](err); ok {
		return false, nil
	}
	if err == nil {
		j.Tip = got.Head
	}
	return true, err
}

// findOnTip is rebaseOntoTip for a trial: nothing is kept, and no fault is looked for.
func (i *Implementer) findOnTip(ctx context.Context, j *jobs.Job, base, head git.OID) (*forge.Rebase, error) {
	r, _, err := putOnTip(ctx, j, base, head)
	if err != nil || len(r.Conflicts) > 0 {
		return r, err
	}
	tree, err := j.Store.Tree(ctx, j.Tip)
	if err != nil {
		return nil, err
	}
	r.BaseTree = string(tree)
	if r.PatchID != j.Command.Merge().Change.PatchID {
		return r, nil // it has to be reviewed again, on what is there by then
	}
	return r, i.results.OnTip(ctx, j, r, verify.Change{Once: true})
}
