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
	riders := len(in.Ahead) - in.Batch
	if in.Batch < 0 || riders < 0 {
		return agent.Fail(forge.FailInvalidOutput, "a batch of %d and one more has %d changes ahead", in.Batch, len(in.Ahead))
	}
	for n := range in.Ahead[:riders] {
		if fits, err := stack(ctx, j, &in.Ahead[n]); err != nil {
			return err
		} else if !fits {
			j.Result.Output = r
			return nil
		}
	}
	if j.Config, err = j.Repository.Config(ctx, j.Tip); err != nil { // a change ahead may alter it, and none of the batch does
		return err
	}
	for n := range in.Ahead[riders:] {
		if goes, err := ride(ctx, j, r, &in.Ahead[riders+n]); err != nil {
			return err
		} else if !goes {
			j.Result.Output = r
			return nil
		}
	}
	base, head, err := change(ctx, j, in.Change.Base, in.Change.Head, j.Command.To.Intent)
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
	base, head, err := change(ctx, j, ahead.Base, ahead.Head, ahead.Task.Intent())
	if err != nil {
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
	r, _, err := putOnTip(ctx, j, base, head, squashMessage(j.Command))
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
	if j.Command.Merge().Batch > 0 {
		// With another file that verify goes by, a pass would say nothing of those before.
		if r.Guarded, err = verify.Steers(ctx, j, j.Tip, git.OID(r.Head), r.Files); err != nil || len(r.Guarded) > 0 {
			return r, err
		}
	}
	return r, i.results.OnTip(ctx, j, r, verify.Change{Once: true})
}

// ride takes a change to be on the base branch that is verified together with later ones, and notes what becomes of it there. It returns
// false if it may not be: it is in conflict or another patch, or alters what verify goes by. Then nothing is verified, and the rules
// have it tried alone.
func ride(ctx context.Context, j *jobs.Job, r *forge.MergeResult, rider *forge.QueueMerge) (bool, error) {
	base, head, err := change(ctx, j, rider.Base, rider.Head, rider.Task.Intent())
	if err != nil {
		return false, err
	}
	tree, err := j.Store.Tree(ctx, j.Tip)
	if err != nil {
		return false, err
	}
	f, _, err := putOnTip(ctx, j, base, head, nil)
	if err != nil {
		return false, err
	}
	f.BaseTree = string(tree)
	if len(f.Conflicts) == 0 {
		f.Guarded, err = verify.Steers(ctx, j, j.Tip, git.OID(f.Head), f.Files)
	}
	r.Batch = append(r.Batch, *f)
	if err != nil || len(f.Conflicts) > 0 || len(f.Guarded) > 0 || f.PatchID != rider.PatchID {
		return false, err
	}
	j.Tip = git.OID(f.Head)
	return true, nil
}
