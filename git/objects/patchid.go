package objects

import (
	"context"
	"errors"
	"io"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// PatchID returns a hash of the change between two commits. It is the same for the same
// change elsewhere in history, with other line numbers. Unlike that of git patch-id it
// depends on white space and on the content of binary files.
func (db *Database) PatchID(ctx context.Context, base, head git.OID) (string, error) {
	from, to, err := treesOf(ctx, db, base, head)
	if err != nil {
		return "", err
	}
	return db.patchID(ctx, from, to, func() error { return nil })
}

// treesOf returns the trees of two commits.
func treesOf(ctx context.Context, db *Database, base, head git.OID) (from, to git.OID, err error) {
	r := db.NewReader(ctx)
	defer r.Close()
	b, err := r.Commit(base)
	if err != nil {
		return "", "", err
	}
	h, err := r.Commit(head)
	if err != nil {
		return "", "", err
	}
	return b.Tree, h.Tree, nil
}

// patchID returns the patch id of two trees, and calls meanwhile while git works. more are
// object directories to read from, beside the store's.
func (db *Database) patchID(ctx context.Context, base, head git.OID, meanwhile func() error, more ...string) (string, error) {
	if id, ok := db.patches.get(base, head); ok {
		return id, meanwhile()
	}
	lines := patchid.New()
	done := make(chan error, 1)
	go func() { done <- writePatch(ctx, db, base, head, lines, more...) }()
	if err := errors.Join(meanwhile(), <-done); err != nil {
		return "", err
	}
	id := lines.ID()
	db.patches.put(base, head, id)
	return id, nil
}

// Patch writes the text of the change between two commits, the very one whose hash the patch id is,
// and returns that id. An error of the writer is returned.
func (db *Database) Patch(ctx context.Context, base, head git.OID, w io.Writer) (id string, err error) {
	lines := patchid.New()
	if err := writePatch(ctx, db, base, head, io.MultiWriter(lines, w)); err != nil {
		return "", err
	}
	id = lines.ID()
	if from, to, err := treesOf(ctx, db, base, head); err == nil { // whoever asks for the id next starts no process
		db.patches.put(from, to, id)
	}
	return id, nil
}

// writePatch writes the patch from one tree, or commit, to another. more are
// object directories to read from, beside the store's.
func writePatch(ctx context.Context, db *Database, base, head git.OID, w io.Writer, more ...string) error {
	c := db.ObjectCommand()
	if len(more) > 0 {
		c.Env = append(c.Env, alternates(more...))
	}
	c.Stdout = w
	_, err := git.Run(ctx, c, "diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--diff-algorithm=myers", "-U3", "-O/dev/null", string(base), string(head))
	return err
}
