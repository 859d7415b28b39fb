// Package ontip makes one commit of a change, and puts it on the tip of the base branch: the change of an attempt, and
// a commit that another one has pushed to the branch of the task's pull request and that a person made the change.
//
// Such a commit is taken only if it is what the person has seen: the head of that branch, in the moment in which it is
// fetched. Whatever is in its way is told as a refusal, with which the task waits for a person, and not as a failure of
// the attempt: to try again would change nothing. Until the change is proposed, nothing at the origin is changed but
// that the commit is kept.
package ontip

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Message returns the message of the one commit, given those of the commits that it is made of.
type Message = func(own []string) string

// Change is a change to be put on the tip. A change without commits has the same Base and Head.
type Change struct {
	Base, Head git.OID
	// Author is the author of its one commit, see forge.Rebase; empty is pfl-forge.
	Author string
}

// Put puts a change on the tip of the base branch as one commit, or says what conflicts there. It returns
// that commit on its old base as well.
func Put(ctx context.Context, j *jobs.Job, c Change, message Message) (r *forge.Rebase, alone git.OID, err error) {
	r = &forge.Rebase{Base: string(j.Tip), Author: c.Author}
	if alone, err = j.Store.Squash(ctx, c.Base, c.Head, c.Author, message); err != nil {
		return nil, "", err
	}
	got, err := j.Store.Rebase(ctx, c.Base, alone, j.Tip)
	if conflict, ok := errors.AsType[*git.ConflictError](err); ok {
		r.Conflicts = conflict.Files
		r.Files, err = Files(ctx, j, c.Base, alone)
		return r, alone, err
	}
	if err != nil {
		return nil, "", err
	}
	r.Head, r.Tree, r.PatchID = string(got.Head), string(got.Tree), got.PatchID
	r.Files, err = Files(ctx, j, j.Tip, got.Head)
	return r, alone, err
}

// Files returns the paths that differ between two commits.
func Files(ctx context.Context, j *jobs.Job, base, head git.OID) ([]string, error) {
	changes, err := j.Store.Changes(ctx, base, head)
	return jobs.Files(changes), err
}

// Author returns the author of an adopted change; empty where none was adopted, or none is known yet.
func Author(a *forge.Adoption) string {
	if a == nil {
		return ""
	}
	return a.Author
}

// Take fetches the commit that is to be adopted, keeps it, and makes the change of it. Where it is none, the refusal
// says why.
func Take(ctx context.Context, j *jobs.Job, a *forge.Adoption, message Message) (c Change, refusal *forge.Rebase, err error) {
	commit, err := jobs.OID("adopted.commit", a.Commit)
	if err != nil {
		return c, nil, err
	}
	branch, err := git.ParseBranch(a.Branch)
	if err != nil {
		return c, nil, err
	}
	var began git.OID // no commit of the task's own, if it has none
	if j.Command.Task.Base != "" {
		if began, err = jobs.OID("base", j.Command.Task.Base); err != nil {
			return c, nil, err
		}
	}
	refuse := func(found git.OID, why string, args ...any) (Change, *forge.Rebase, error) {
		return c, &forge.Rebase{Base: string(j.Tip), Refusal: fmt.Sprintf(why, args...), Found: string(found)}, nil
	}
	switch found, err := j.Store.FetchHead(ctx, j.GitAttempt(), branch); {
	case errors.Is(err, git.ErrNoBranch), errors.Is(err, store.ErrNoOrigin):
		return refuse("", "the branch %s is gone", branch)
	case err != nil:
		return c, nil, err
	case found != commit:
		return refuse(found, "the branch %s is at commit %s by now", branch, found.Short())
	}
	// A push takes the place of the commit later, and its branch is all that keeps it at the origin.
	if _, err := j.Store.Keep(ctx, j.GitAttempt(), commit); err != nil {
		return c, nil, err
	}
	taken, err := j.Store.Take(ctx, commit, j.Tip, began, message)
	if fault, ok := errors.AsType[*git.WorkError](err); ok {
		return refuse("", "%s", term.Line(fault.Error()))
	}
	if err != nil {
		return c, nil, err
	}
	if c = (Change{taken.Base, taken.Commit, taken.Author}); c.Base == c.Head {
		return refuse("", "it changes nothing")
	}
	return c, nil, nil
}
