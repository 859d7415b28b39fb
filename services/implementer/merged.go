package implementer

import (
	"context"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// earlierMerge returns the result of an earlier attempt to merge the task, if it
// moved the base branch, and nil otherwise. A merge that the change was made on top
// of does not count: the change came later.
func (i *Implementer) earlierMerge(ctx context.Context, j *jobs.Job, base git.OID) (*forge.MergeResult, error) {
	all, err := j.Store.PendingMerges(ctx, j.Intent())
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.Task != j.Task() {
			continue
		}
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

// isMerged reports whether a merge is on the base branch with the given tip. A commit
// that is missing here cannot be. Neither is one that the branch reaches by a merge commit alone: that is a forge's way to merge it on another
// parent, and so another tree may be there.
func isMerged(ctx context.Context, r *jobs.Repository, l store.PendingMerge, tip git.OID) (bool, error) {
	if !r.Store.Has(ctx, l.Commit) {
		return false, nil
	}
	if on, err := r.Store.IsAncestor(ctx, l.Commit, tip); err != nil || !on {
		return false, err
	}
	if l.Commit == l.Parent {
		return true, nil
	}
	line, err := r.Store.Log(ctx, l.Parent, tip, maxLine)
	return len(line) == maxLine || slices.ContainsFunc(line, func(c objects.LogLine) bool { return c.Commit == l.Commit }), err
}

// maxLine bounds the commits that are looked through for a merge. One that is further back is taken to be on the branch's own line.
const maxLine = 10_000

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
