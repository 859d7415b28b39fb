package implementer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/services/implementer/proposal"
)

// earlierMerge returns the result of an earlier attempt to merge the task, if
// it moved the base branch, and nil otherwise. A merge that the change was made
// on top of does not count: the change came later.
func (i *Implementer) earlierMerge(ctx context.Context, j *jobs.Job, base git.OID) (*forge.MergeResult, error) {
	all, err := j.Store.MergesOf(ctx, j.Intent(), j.Task())
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		i.recordKept(j, l) // as if this process had kept it: which one did may be gone
		on, err := isMerged(ctx, j.Repository, l, j.Tip)
		if err != nil {
			return nil, err
		}
		if !on {
			continue
		}
		before, err := j.Store.IsAncestor(ctx, l.Commit, base)
		if err != nil {
			return nil, err
		}
		if !before {
			return mergeResult(ctx, j.Repository, l)
		}
	}
	return nil, nil //nolint:nilnil // it is not merged
}

// isMerged reports whether a merge is on the base branch with the given tip. A
// commit that is missing here cannot be.
func isMerged(ctx context.Context, r *jobs.Repository, l store.PendingMerge, tip git.OID) (bool, error) {
	if !r.Store.Has(ctx, l.Commit) {
		return false, nil
	}
	return proposal.OnLine(ctx, r.Store, l.Parent, l.Commit, tip)
}

// mergeResult returns the result of a merge that is on the base branch.
func mergeResult(ctx context.Context, r *jobs.Repository, l store.PendingMerge) (*forge.MergeResult, error) {
	tree, err := r.Store.Tree(ctx, l.Commit)
	if err != nil {
		return nil, err
	}
	patch, err := r.Store.PatchID(ctx, l.Parent, l.Commit)
	if err != nil {
		return nil, err
	}
	return &forge.MergeResult{
		Outcome: forge.MergeDone, Commit: string(l.Commit), Parent: string(l.Parent), Tree: string(tree), PatchID: patch,
	}, nil
}
