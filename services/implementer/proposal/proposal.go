// Package proposal pushes a change that could be merged now to the branch of its
// pull request, instead of the base branch.
//
// Up to there it is a merge as any other: the change is put on the tip of the
// base branch, its verify commands pass there, and what it became is the patch
// that was reviewed. The merge is kept in the repository before the branch is
// pushed, and so are its proofs. So whoever merges the pull request, even in the
// next moment, merges a commit whose proofs are there; one that lands as it is,
// by a fast-forward, is found by its name by the next attempt, and by a start
// that compares the journal with the repository.
//
// The branch belongs to people as much as to pfl-forge: it is in their
// repository, and they are invited to look at it. What another one has pushed
// there is told, and never overwritten: only a commit that a person has made the
// change (Over) is replaced by what became of it.
package proposal

import (
	"context"
	"errors"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// taskMark stands for the task in the pattern of a head branch; package config
// refuses patterns without it.
const taskMark = "{task}"

// Push pushes the commit of a merge to the branch that the policy makes of the
// job's task. It returns the merge with the outcome proposed, and the names of
// both branches; or with edited, no commit, and the present head in Pull, if
// another one has pushed to the branch.
//
// A repository without an origin has no pull requests, and neither has a pattern
// that makes the base branch, or one for all tasks: these are failures of the
// configuration, which a person has to mend.
func Push(ctx context.Context, j *jobs.Job, base git.Branch, r *forge.MergeResult) (*forge.MergeResult, error) {
	if r.Commit == r.Parent { // all of it is on the base branch already
		return r, nil
	}
	branch, err := headBranch(j, base)
	if err != nil {
		return nil, err
	}
	var over git.OID
	if name := j.Command.Merge().Over; name != "" {
		if over, err = jobs.OID("over", name); err != nil {
			return nil, err
		}
	}
	err = j.Store.Propose(ctx, j.Task(), branch, git.OID(r.Commit), over)
	if e, ok := errors.AsType[*store.EditedError](err); ok {
		at := &forge.PullRequest{Branch: string(branch), Base: string(base), Head: string(e.At)} // for who takes that over
		return &forge.MergeResult{Outcome: forge.MergeEdited, Branch: string(branch), BaseBranch: string(base), Pull: at}, nil
	}
	switch {
	case errors.Is(err, store.ErrNoOrigin):
		return nil, agent.Fail(forge.FailConfig, "merge.how is pull_request, but there is no git origin: push the repository to a forge, or remove merge.how")
	case err != nil:
		return nil, err
	}
	r.Outcome, r.Branch, r.BaseBranch = forge.MergeProposed, string(branch), string(base)
	return r, nil
}

// headBranch returns the branch of a task's pull request. It is never the base
// branch, whatever the pattern says.
func headBranch(j *jobs.Job, base git.Branch) (git.Branch, error) {
	pattern := j.Command.Merge().Change.Pull.Branch
	branch, err := git.ParseBranch(strings.ReplaceAll(pattern, taskMark, string(j.Task())))
	if err != nil || branch == base || !strings.Contains(pattern, taskMark) {
		return "", agent.Fail(forge.FailConfig, "merge.branch is %.200q: it has to make a branch for each task, with {task} in it", pattern)
	}
	return branch, nil
}
