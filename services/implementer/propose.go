package implementer

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

// taskMark stands for the task in the pattern of a head branch; package config refuses patterns without it.
const taskMark = "{task}"

// propose pushes a change that could be merged now to the branch of its pull request, instead of the base branch. The merge is kept
// with its proofs before that, as any other: whoever merges the pull request, even in the next moment, merges a commit
// whose proofs are there, and one that lands by itself is found by its name. What another one has pushed to the branch is never
// overwritten.
func (i *Implementer) propose(ctx context.Context, j *jobs.Job, r *forge.MergeResult, proofs string) (*forge.MergeResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	base, err := j.Base(ctx)
	if err != nil {
		return nil, err
	}
	branch, err := headBranch(j, base)
	if err != nil {
		return nil, err
	}
	if err := i.keepMerge(ctx, j, r, proofs); err != nil {
		return nil, err
	}
	switch err = j.Store.Propose(ctx, j.Task(), branch, git.OID(r.Commit)); {
	case errors.Is(err, store.ErrNoOrigin):
		return nil, agent.Fail(forge.FailConfig, "merge.how is pull_request, but there is no git origin: push the repository to a forge, or remove merge.how")
	case errors.Is(err, store.ErrEdited):
		return &forge.MergeResult{Outcome: forge.MergeEdited, Branch: string(branch), BaseBranch: string(base)}, nil
	case err != nil:
		return nil, err
	}
	i.crash("proposed")
	r.Outcome, r.Branch, r.BaseBranch = forge.MergeProposed, string(branch), string(base)
	return r, nil
}

// headBranch returns the branch of a task's pull request. It is never the base branch, whatever the pattern says.
func headBranch(j *jobs.Job, base git.Branch) (git.Branch, error) {
	pattern := j.Command.Merge().Change.Pull.Branch
	branch, err := git.ParseBranch(strings.ReplaceAll(pattern, taskMark, string(j.Task())))
	if err != nil || branch == base || !strings.Contains(pattern, taskMark) {
		return "", agent.Fail(forge.FailConfig, "merge.branch is %.200q: it has to make a branch for each task, with {task} in it", pattern)
	}
	return branch, nil
}
