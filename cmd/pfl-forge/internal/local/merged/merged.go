// Package merged finds out by git alone what of a project is on its base
// branch: for whoever lost the journals, or has older ones.
//
// Three things say so of a task, in this order. None proves who made it:
// whoever can push can write all of them.
//
//	the trailers of a commit of the branch's own line  it was pushed, or a forge kept its message: anywhere in it, since forges
//	                                                   put several together
//	the same change in another commit                  a forge made one commit of it, with words of its own: the commit to which the
//	                                                   branch of the pull request was pushed last is kept at the origin
//
// What a person adds to a pull request before a forge makes one commit of all
// of it, without our trailers, is not found.
package merged

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
)

// Change is a commit on a branch that is the change of a task.
type Change struct {
	// Commit is the newest of the task.
	Commit git.OID
	Intent forge.IntentID
	Task   forge.TaskID
}

// Branch is a branch of a repository, as of a commit.
type Branch struct {
	Store *store.Store
	Tip   git.OID
	// Project is the one whose changes are looked for.
	Project forge.ProjectID
	// Remote is the one whose forge merges pull requests; empty where changes are
	// pushed. What was proposed is fetched from there, and a remote that cannot
	// be read is an error: without it changes would be missing from the list.
	Remote string
}

// Changes returns the newest change of each task of the project that the branch has:
// those that say so themselves with the newest first, and then the others, by their task.
func (b *Branch) Changes(ctx context.Context) ([]Change, error) {
	list, err := b.named(ctx)
	if err != nil || b.Remote == "" {
		return list, err
	}
	proposed, err := store.FetchProposed(ctx, b.Store, b.Remote)
	if err != nil {
		return nil, fmt.Errorf("what was proposed cannot be read from %s: %w", b.Remote, err)
	}
	for _, c := range list {
		delete(proposed, git.Name(c.Task))
	}
	for _, name := range slices.Sorted(maps.Keys(proposed)) {
		c, ok, err := b.of(ctx, name, proposed[name])
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, c)
		}
	}
	return list, nil
}

// named returns the changes that the messages of commits name, of the branch's own line of history:
// whoever opens a pull request writes the messages of its commits, which a merge makes reachable.
func (b *Branch) named(ctx context.Context) (list []Change, err error) {
	out, err := b.Store.Git(ctx, "log", "-z", "--first-parent", "--no-show-signature", "--grep=^"+trailers.Task+": ", "--format=%H%n%B", string(b.Tip), "--")
	if err != nil {
		return nil, err
	}
	seen := map[forge.TaskID]bool{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		commit, message, _ := strings.Cut(entry, "\n")
		for _, c := range trailers.Read(message) {
			if c.Project == b.Project && !seen[c.Task] {
				seen[c.Task] = true
				list = append(list, Change{git.OID(commit), c.Intent, c.Task})
			}
		}
	}
	return list, nil
}

// of returns the commit of the branch that has the change of a task, which was
// proposed as another one.
func (b *Branch) of(ctx context.Context, name git.Name, proposed git.OID) (c Change, found bool, err error) {
	out, err := b.Store.Git(ctx, "log", "-1", "--no-show-signature", "--format=%P%n%B", string(proposed), "--")
	if err != nil {
		return c, false, err
	}
	parents, message, _ := strings.Cut(string(out), "\n")
	parent, err := git.ParseOID(parents)
	if err != nil {
		return c, false, nil //nolint:nilerr // it is no change of ours, which has one parent
	}
	said := trailers.Read(message)
	i := slices.IndexFunc(said, func(c trailers.Change) bool { return c.Project == b.Project && git.Name(c.Task) == name })
	if i < 0 {
		return c, false, nil
	}
	commit, err := b.same(ctx, parent, proposed)
	return Change{commit, said[i].Intent, said[i].Task}, commit != "", err
}

// same returns the newest commit of the branch's own line of history that changes the
// same in the same way as another one, which was made on its parent; empty if there
// is none. It has every path of that, so those that have one of them are compared.
func (b *Branch) same(ctx context.Context, parent, commit git.OID) (git.OID, error) {
	files, err := b.Store.Changes(ctx, parent, commit)
	if err != nil || len(files) == 0 {
		return "", err
	}
	want, err := b.Store.PatchID(ctx, parent, commit)
	if err != nil {
		return "", err
	}
	out, err := b.Store.Git(ctx, "log", "--first-parent", "--no-show-signature", "--format=%H %P", string(b.Tip), "^"+string(parent), "--", files[0].Path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		if len(names) < 2 {
			continue // the first commit of all
		}
		is, err := b.Store.PatchID(ctx, git.OID(names[1]), git.OID(names[0]))
		if err != nil && !errors.Is(err, git.ErrNotFound) { // the end of a shallow clone
			return "", err
		}
		if is == want {
			return git.OID(names[0]), nil
		}
	}
	return "", nil
}
