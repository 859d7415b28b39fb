package proposal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Prove reports the merge that a forge made: a fact, whoever asked it to. It
// compares that with the change that was verified: the first parent has to be
// the commit that it was verified on, and its tree the one that was verified.
// That holds for a fast-forward, for a squash, for commits made anew and for a
// merge commit alike, whose names differ and whose trees do not. Where it does
// not hold, the result says why, and a person, or an intent, has to look at the
// base branch.
//
// It counts nothing of what the forge says but the name of the commit: that
// commit has to be on the base branch, as it is fetched. Where the branch has it
// by a merge commit alone, it proves that merge commit.
func Prove(ctx context.Context, j *jobs.Job, merge *forge.Landing) error {
	commit, err := jobs.OID("landed", merge.Commit)
	if err != nil {
		return err
	}
	on := j.Store.Has(ctx, commit)
	if on {
		if on, err = j.Store.IsAncestor(ctx, commit, j.Tip); err != nil {
			return err
		}
	}
	if !on {
		return agent.Fail(forge.FailRepository, "the forge says that commit %s was merged, and the base branch at %s does not have it",
			commit.Short(), j.Tip.Short())
	}
	if commit, err = brought(ctx, j.Store, commit, j.Tip); err != nil {
		return err
	}
	line, err := j.Store.Log(ctx, "", commit, 2)
	if err != nil {
		return err
	}
	tree, err := j.Store.Tree(ctx, commit)
	if err != nil {
		return err
	}
	r := &forge.MergeResult{Outcome: forge.MergeDone, Commit: string(commit), Tree: string(tree), PatchID: j.Command.Merge().Change.PatchID}
	if len(line) > 1 {
		r.Parent = string(line[1].Commit)
	}
	switch {
	case r.Parent != merge.Parent:
		r.Unproven = fmt.Sprintf("its parent is %s, and it was verified on %s", short(r.Parent), short(merge.Parent))
	case r.Tree != merge.Tree:
		r.Unproven = fmt.Sprintf("its tree is %s, and that of commit %s, which was verified, is %s", short(r.Tree), short(merge.Head), short(merge.Tree))
	}
	j.Result.Output = r
	return nil
}

// short returns the name of a commit or tree for people.
func short(name string) string {
	if name == "" {
		return "none"
	}
	return git.OID(name).Short()
}

// maxLine bounds the commits that are looked through for a merge. One that is
// further back is taken to be on the branch's own line.
const maxLine = 10_000

// brought returns the commit by which a commit came to the own line of history
// of the branch with a tip: itself, or the merge commit that it was merged by.
func brought(ctx context.Context, s *store.Store, commit, tip git.OID) (git.OID, error) {
	line, err := s.Log(ctx, commit, tip, maxLine)
	if err != nil || len(line) == 0 || len(line) == maxLine {
		return commit, err
	}
	n := sort.Search(len(line), func(i int) bool { // the newest that has it not; it is in all after that one
		has, failed := s.IsAncestor(ctx, commit, line[i].Commit)
		err = errors.Join(err, failed)
		return !has
	})
	if err != nil || n == 0 {
		return commit, err
	}
	by := line[n-1].Commit
	parents, err := s.Log(ctx, "", by, 2)
	if err != nil || len(parents) > 1 && parents[1].Commit == commit {
		return commit, err
	}
	return by, nil
}

// OnLine reports whether a commit is on the own line of history of the branch
// with a tip, after its parent. One that the branch reaches by a merge commit
// alone is not: that is a forge's way to merge it on another parent, and so
// another tree may be there.
func OnLine(ctx context.Context, s *store.Store, parent, commit, tip git.OID) (bool, error) {
	if on, err := s.IsAncestor(ctx, commit, tip); err != nil || !on {
		return false, err
	}
	line, err := s.Log(ctx, parent, tip, maxLine)
	on := commit == parent || len(line) == maxLine || slices.ContainsFunc(line, func(c objects.LogLine) bool { return c.Commit == commit })
	return on, err
}
