package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/git"
)

// maxCommits limits the commits of one attempt.
const maxCommits = 1000

// Rebased reports a rebase. Its objects are in the store and durable.
type Rebased struct {
	// Head is the last copied commit; it equals onto when every change is there
	// already.
	Head git.OID
	// Tree is the tree of Head: the verify commands are run on it.
	Tree git.OID
	// PatchID identifies the change onto..Head, whatever commit it is made on:
	// if it stays the same over a rebase, a review still holds.
	PatchID string
	// Commits counts the commits in onto..Head.
	Commits int
}

// Rebase copies the commits base..head onto another commit without a checkout, as git
// rebase would: author, date and message stay, commits whose change is there already
// are left out. The committer is the service, at the time of the original, so the same
// rebase gives the same commits. The caller Keeps the result.
//
// Errors: *ConflictError; *WorkError (Rewritten when base is no ancestor of head,
// Merged, Oversized).
func (db *Database) Rebase(ctx context.Context, base, head, onto git.OID) (_ Rebased, err error) {
	ctx, end := git.Begin(ctx, git.OpRebase)
	defer func() { end(err) }()
	scratch, err := os.MkdirTemp(db.hub.quarantine(), "rebase-")
	if err != nil {
		return Rebased{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	p := replay{db: db, scratch: scratch, fresh: filepath.Join(scratch, "new")}
	p.objects = db.NewReader(ctx, p.fresh)
	defer p.objects.Close()
	if err := os.Mkdir(p.fresh, 0o700); err != nil {
		return Rebased{}, err
	}
	from, err := p.objects.Commit(base)
	if err != nil {
		return Rebased{}, err
	}
	tip, err := p.objects.Commit(onto)
	if err != nil {
		return Rebased{}, err
	}
	chain, err := p.objects.Chain(base, head)
	if err != nil {
		return Rebased{}, err
	}
	start, kept := tip.Tree, len(chain)
	if base != onto {
		tip, kept, err = p.run(ctx, chain, from.Tree, tip)
	} else if kept > 0 {
		tip = chain[kept-1]
	}
	if err != nil {
		return Rebased{}, err
	}
	id, err := db.patchID(ctx, start, tip.Tree, p.flush, p.fresh)
	if err != nil {
		return Rebased{}, err
	}
	return Rebased{Head: tip.OID, Tree: tip.Tree, PatchID: id, Commits: kept}, moveObjects(p.files, db.ObjectDir())
}

// Descends returns nil if head is base or descends from it. Error: *WorkError (Rewritten).
func (db *Database) Descends(ctx context.Context, base, head git.OID) error {
	r := db.NewReader(ctx)
	defer r.Close()
	if c, err := r.Commit(head); err == nil && len(c.Parents) == 1 && c.Parents[0] == base { // most often it is one commit
		return nil
	}
	ok, err := db.IsAncestor(ctx, base, head)
	if err == nil && !ok {
		return rewritten(base)
	}
	return notFound(err)
}

// rewritten returns the fault of a branch that its agent moved away from where
// it started.
func rewritten(base git.OID) error {
	return &git.WorkError{Fault: git.Rewritten, Detail: "the branch no longer contains " + base.Short() + ", the commit it started from"}
}

// replay is a running rebase. New objects go to a directory of its own, and
// into the store when all of them are made: a rebase with a conflict leaves
// nothing behind.
type replay struct {
	db      *Database
	objects *Reader
	// scratch has objects that only the merges need.
	scratch string
	// fresh is the object directory for the objects of the result.
	fresh string
	// files are the objects in fresh, once they are durable.
	files []string
}

// flush makes the objects in fresh durable, together.
func (p *replay) flush() (err error) {
	p.files, err = flushLoose(p.fresh)
	return err
}

// run picks each commit on top of tip and returns the new tip and how many
// commits it took. base is the tree of the commit before the first one. A
// commit whose change tip has already is left out; one that was empty before is
// kept. Error: *ConflictError, with the commit.
func (p *replay) run(ctx context.Context, commits []Commit, base git.OID, tip Commit) (Commit, int, error) {
	id := p.db.Identity()
	kept := 0
	for _, c := range commits {
		tree, err := p.mergeTrees(ctx, base, tip.Tree, c.Tree)
		if conflict, ok := errors.AsType[*git.ConflictError](err); ok {
			conflict.Commit = c.OID
		}
		if err != nil {
			return tip, 0, err
		}
		if tree == tip.Tree && c.Tree != base { // its change is there already
			base = c.Tree
			continue
		}
		base = c.Tree
		next := c
		next.Tree, next.Parents = tree, []git.OID{tip.OID}
		next.Committer = fmt.Sprintf("%s <%s> %s", id.Name, id.Email, when(c.Committer))
		if next.OID, err = WriteCommit(p.fresh, next, false); err != nil {
			return tip, 0, err
		}
		tip, kept = next, kept+1
	}
	return tip, kept, nil
}

// mergeTrees returns the three-way merge of trees. Error: *ConflictError, without the commit.
func (p *replay) mergeTrees(ctx context.Context, base, ours, theirs git.OID) (git.OID, error) {
	tree, ok, err := treeMerger{objects: p.objects, to: p.fresh}.merge(base, ours, theirs)
	if err != nil || ok {
		return tree, err
	}
	return p.mergeByGit(ctx, base, ours, theirs)
}

// mergeByGit merges trees whose files have to be merged as well. git merge-tree takes
// the base from history, so it is given two scratch commits with the trees to merge, on
// a scratch parent with the base's tree.
func (p *replay) mergeByGit(ctx context.Context, base, ours, theirs git.OID) (git.OID, error) {
	const nobody = "nobody <> 0 +0000"
	write := func(tree git.OID, parents ...git.OID) (o git.OID, err error) {
		d := Commit{Tree: tree, Parents: parents, Author: nobody, Committer: nobody}
		return WriteCommit(p.scratch, d, false)
	}
	root, err := write(base)
	if err != nil {
		return "", err
	}
	left, err := write(ours, root)
	if err != nil {
		return "", err
	}
	right, err := write(theirs, root)
	if err != nil {
		return "", err
	}
	return p.mergeCommits(ctx, left, right)
}
