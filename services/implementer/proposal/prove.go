package proposal

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Prove returns what the forge merged: a fact, whoever asked it to. It compares that with what was verified: the first parent of the merge has
// to be the commit that it was verified on, and its tree the one that was verified. That holds for a fast-forward, for a squash, for commits
// made anew and for a merge commit alike, whose names differ and whose trees do not. Where it does not hold, the result says why, and a
// person, or an intent, has to look at the base branch.
//
// It counts nothing of what the forge says but the name of the commit: that commit has to be on the base branch, as it is fetched.
func Prove(ctx context.Context, j *jobs.Job, landed *forge.Landing) (*forge.MergeResult, error) {
	commit, err := jobs.OID("landed", landed.Commit)
	if err != nil {
		return nil, err
	}
	on := j.Store.Has(ctx, commit)
	if on {
		if on, err = j.Store.IsAncestor(ctx, commit, j.Tip); err != nil {
			return nil, err
		}
	}
	if !on {
		return nil, agent.Fail(forge.FailRepository, "the forge says that commit %s was merged, and the base branch at %s does not have it",
			commit.Short(), j.Tip.Short())
	}
	line, err := j.Store.Log(ctx, "", commit, 2)
	if err != nil {
		return nil, err
	}
	tree, err := j.Store.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	r := &forge.MergeResult{Outcome: forge.MergeDone, Commit: string(commit), Tree: string(tree), PatchID: j.Command.Merge().Change.PatchID}
	if len(line) > 1 {
		r.Parent = string(line[1].Commit)
	}
	switch {
	case r.Parent != landed.Parent:
		r.Unproven = fmt.Sprintf("its parent is %s, and it was verified on %s", short(r.Parent), short(landed.Parent))
	case r.Tree != landed.Tree:
		r.Unproven = fmt.Sprintf("its tree is %s, and that of commit %s, which was verified, is %s", short(r.Tree), short(landed.Head), short(landed.Tree))
	}
	return r, nil
}

// short returns the name of a commit or tree for people.
func short(name string) string {
	if name == "" {
		return "none"
	}
	return git.OID(name).Short()
}
