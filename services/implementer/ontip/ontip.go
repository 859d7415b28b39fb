// Package ontip makes one commit of a change, and puts it on the tip of the base
// branch: the change of an attempt, and a commit that another one has pushed to
// the branch of the task's pull request and that a person made the change.
//
// Such a commit is taken only if the person has seen it: as the head of that
// branch, where it has to be still in the moment in which it is fetched. Everything
// that is in its way is told as a refusal, with which the task waits for a person,
// and not as a failure of the attempt: to try again would change nothing. Until the
// change is proposed, nothing at the origin is changed but that the commit is kept.
//
//	the branch is        and the commit                        then
//	gone                 whatever                              refused
//	at another commit    whatever                              refused, with that one
//	at the commit        has no single commit in common        refused
//	                     with the base branch
//	at the commit        changes nothing there                 refused
//	at the commit        has a path that no change may have    refused
//	at the commit        is a change                           kept, and put on the tip as one commit
//
// A conflict on the tip is reported as that of any change, and so is a change
// that is there already: what follows from these is for the rules to say.
package ontip

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
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

// Put puts a change on the tip of the base branch as one commit, or says what
// conflicts there. It returns that commit on its old base as well.
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

// Author returns the author of a change that is to be merged; empty where it
// began with no commit of another one.
func Author(q *forge.QueueMerge) string {
	if q.Facts == nil || q.Facts.Adopted == nil {
		return ""
	}
	return q.Facts.Adopted.Author
}

// Take fetches the commit to adopt, keeps it in the store, and returns it as a change.
// The refusal is set instead, with the reason, if the commit cannot be adopted.
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
	switch found, err := store.FetchHead(ctx, j.Store, j.GitAttempt(), branch); {
	case errors.Is(err, git.ErrNoBranch), errors.Is(err, store.ErrNoOrigin):
		return refuse("", "the branch %s is gone", branch)
	case err != nil:
		return c, nil, err
	case found != commit:
		return refuse(found, "the branch %s is at commit %s by now", branch, found.Short())
	}
	// A push takes the place of the commit later, and its branch is all that
	// keeps it at the origin.
	if _, err := j.Store.Keep(ctx, j.GitAttempt(), commit); err != nil {
		return c, nil, err
	}
	taken, err := objects.Take(ctx, j.Store.Database, objects.Pushed{Commit: commit, Tip: j.Tip, Began: began}, message)
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
