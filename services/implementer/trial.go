package implementer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
	"github.com/pfl-forge/pfl-forge/services/implementer/ontip"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
)

// try carries out a trial of a merge: it verifies the change on top of the changes ahead of
// it in the queue, and merges nothing. The later merge uses the finding only if the trees
// are the same. So a trial needs no lock, keeps nothing, and may assume a wrong order.
func (i *Implementer) try(ctx context.Context, j *jobs.Job) error {
	wanted, err := i.bus.Journal.Wanted(ctx, j.Command.To, j.Command.Attempt)
	if err != nil {
		return err
	}
	if !wanted {
		return agent.Fail(forge.FailKilled, "the trial was cancelled")
	}
	in := j.Command.Merge()
	// A result without a candidate means that the changes ahead conflict with each other.
	// It does not blame this change: the trial of the conflicting change names it.
	r := &forge.MergeResult{Outcome: forge.MergeTried}
	riders := len(in.Ahead) - in.Batch
	if in.Batch < 0 || riders < 0 {
		return agent.Fail(forge.FailInvalidOutput, "a batch of %d and one more has %d changes ahead", in.Batch, len(in.Ahead))
	}
	for n := range in.Ahead {
		ahead := &in.Ahead[n]
		base, head, err := change(ctx, j, ahead.Base, ahead.Head, ahead.Task.Intent())
		if err != nil {
			return err
		}
		// As the merge does: the same commits give the same tree, whoever puts them together.
		f, err := onStack(ctx, j, ontip.Change{Base: base, Head: head}, nil)
		fits := err == nil && len(f.Conflicts) == 0
		if err == nil && n >= riders {
			fits, err = verify.Ride(ctx, j, r, f, ahead.PatchID)
		}
		if err != nil || !fits {
			j.Result.Output = r
			return err
		}
		j.Tip = git.OID(f.Head)
	}
	if j.Config, err = j.Repository.Config(ctx, j.Tip); err != nil { // a change ahead may alter it
		return err
	}
	base, head, err := change(ctx, j, in.Change.Base, in.Change.Head, j.Command.To.Intent)
	if err != nil {
		return err
	}
	r.Candidate, err = i.findOnTip(ctx, j, base, head)
	j.Result.Output = r
	return err
}

// onStack puts a change on the tip of the job, with those ahead on it.
func onStack(ctx context.Context, j *jobs.Job, c ontip.Change, message ontip.Message) (*forge.Rebase, error) {
	tree, err := j.Store.Tree(ctx, j.Tip)
	if err != nil {
		return nil, err
	}
	r, _, err := ontip.Put(ctx, j, c, message)
	if err == nil && len(r.Conflicts) == 0 {
		r.BaseTree = string(tree)
	}
	return r, err
}

// findOnTip is rebaseOntoTip for a trial: nothing is kept, and no fault is looked for.
func (i *Implementer) findOnTip(ctx context.Context, j *jobs.Job, base, head git.OID) (*forge.Rebase, error) {
	change := j.Command.Merge().Change
	r, err := onStack(ctx, j, ontip.Change{Base: base, Head: head, Author: ontip.Author(change)}, commitmsg.Squash(j.Command))
	if err != nil || len(r.Conflicts) > 0 || r.PatchID != change.PatchID {
		return r, err // another patch has to be reviewed again, on what is there by then
	}
	if j.Command.Merge().Batch > 0 {
		// With another file that verify goes by, a pass would say nothing of those before.
		if r.Guarded, err = verify.Steers(ctx, j, git.OID(r.Head), r.Files); err != nil || len(r.Guarded) > 0 {
			return r, err
		}
	}
	return r, i.results.OnTip(ctx, j, r, verify.Change{Once: true})
}
