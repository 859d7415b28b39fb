package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// maxCommits limits the commits of one attempt.
const maxCommits = 1000

// Rebased reports a rebase.
type Rebased struct {
	Head    OID    // equals onto when every change is there already
	Tree    OID    // of Head
	PatchID string // of onto..Head
	Commits int    // in onto..Head
}

// Rebase copies the commits base..head onto another commit without a checkout, as git rebase would: author,
// date and message stay, commits whose change is there already are left out. The committer is the service, at the
// time of the original, so the same rebase gives the same commits. The caller Keeps the result.
//
// Errors: *ConflictError; *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (db *Database) Rebase(ctx context.Context, base, head, onto OID) (Rebased, error) {
	scratch, err := os.MkdirTemp(db.quarantine(), "rebase-")
	if err != nil {
		return Rebased{}, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	p := replay{db: db, scratch: scratch, fresh: filepath.Join(scratch, "new")}
	p.objects = db.readObjects(ctx, p.fresh)
	defer p.objects.close()
	if err := os.Mkdir(p.fresh, 0o700); err != nil {
		return Rebased{}, err
	}
	patch := db.beginPatch(ctx, p.fresh) // while this git starts, the commits are copied
	defer patch.cancel()
	from, err := p.objects.commit(base)
	if err != nil {
		return Rebased{}, err
	}
	tip, err := p.objects.commit(onto)
	if err != nil {
		return Rebased{}, err
	}
	chain, err := p.objects.chain(base, head)
	if err != nil {
		return Rebased{}, err
	}
	start, kept := tip.tree, len(chain)
	if base != onto {
		tip, kept, err = p.run(ctx, chain, from.tree, tip)
	} else if kept > 0 {
		tip = chain[kept-1]
	}
	if err != nil {
		return Rebased{}, err
	}
	id, err := patch.between(start, tip.tree, p.flush)
	if err != nil {
		return Rebased{}, err
	}
	return Rebased{Head: tip.oid, Tree: tip.tree, PatchID: id, Commits: kept}, moveObjects(p.files, db.ObjectDir())
}

// descends returns nil if head is base or descends from it. Error: *WorkError (Rewritten).
func (db *Database) Descends(ctx context.Context, base, head OID) error {
	r := db.readObjects(ctx)
	defer r.close()
	if c, err := r.commit(head); err == nil && len(c.parents) == 1 && c.parents[0] == base { // most often it is one commit
		return nil
	}
	ok, err := db.IsAncestor(ctx, base, head)
	if err == nil && !ok {
		return rewritten(base)
	}
	return notFound(err)
}

func rewritten(base OID) error {
	return &WorkError{Fault: Rewritten, Detail: "the branch no longer contains " + base.Short() + ", the commit it started from"}
}

// replay is a running rebase. New objects go to a directory of its own, and into the store when all of them are made.
type replay struct {
	db      *Database
	objects *objectReader
	scratch string
	fresh   string   // the object directory of what it makes
	files   []string // the objects in fresh, once they are durable
}

func (p *replay) flush() (err error) {
	p.files, err = flushLoose(p.fresh)
	return err
}

// run picks each commit on top of tip and returns the new tip and how many commits it took.
func (p *replay) run(ctx context.Context, commits []commitData, base OID, tip commitData) (commitData, int, error) {
	id := p.db.Identity()
	kept := 0
	for _, c := range commits {
		tree, err := p.mergeTrees(ctx, base, tip.tree, c.tree)
		if conflict, ok := errors.AsType[*ConflictError](err); ok {
			conflict.Commit = c.oid
		}
		if err != nil {
			return tip, 0, err
		}
		if tree == tip.tree && c.tree != base { // its change is there already
			base = c.tree
			continue
		}
		base = c.tree
		next := c
		next.tree, next.parents = tree, []OID{tip.oid}
		next.committer = fmt.Sprintf("%s <%s> %s", id.Name, id.Email, when(c.committer))
		if next.oid, err = writeCommit(p.fresh, next, false); err != nil {
			return tip, 0, err
		}
		tip, kept = next, kept+1
	}
	return tip, kept, nil
}

// mergeTrees returns the three-way merge of trees. Error: *ConflictError, without the commit.
func (p *replay) mergeTrees(ctx context.Context, base, ours, theirs OID) (OID, error) {
	tree, ok, err := treeMerger{objects: p.objects, to: p.fresh}.merge(base, ours, theirs)
	if err != nil || ok {
		return tree, err
	}
	return p.mergeByGit(ctx, base, ours, theirs)
}

// mergeByGit merges trees whose files have to be merged as well. git merge-tree takes the base from history, so it is given
// two scratch commits with the trees to merge, on a scratch parent with the base's tree.
func (p *replay) mergeByGit(ctx context.Context, base, ours, theirs OID) (OID, error) {
	const nobody = "nobody <> 0 +0000"
	write := func(tree OID, parents ...OID) (o OID, err error) {
		d := commitData{tree: tree, parents: parents, author: nobody, committer: nobody}
		return writeCommit(p.scratch, d, false)
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
