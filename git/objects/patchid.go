package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/pfl-forge/pfl-forge/git"
)

// PatchID returns a hash of the change between two commits. It is the same for the same
// change elsewhere in history, with other line numbers. Unlike that of git patch-id it
// depends on white space and on the content of binary files.
func (db *Database) PatchID(ctx context.Context, base, head git.OID) (string, error) {
	var trees [2]git.OID
	r := db.NewReader(ctx)
	defer r.Close()
	for i, o := range []git.OID{base, head} {
		c, err := r.Commit(o)
		if err != nil {
			return "", err
		}
		trees[i] = c.Tree
	}
	return db.patchID(ctx, trees[0], trees[1], func() error { return nil })
}

// patchID returns the patch id of two trees, and calls meanwhile while git works. more are
// object directories to read from, beside the store's.
func (db *Database) patchID(ctx context.Context, base, head git.OID, meanwhile func() error, more ...string) (string, error) {
	if id, ok := db.patches.get(base, head); ok {
		return id, meanwhile()
	}
	lines := patchLines{sum: sha256.New()}
	c := db.ObjectCommand()
	if len(more) > 0 {
		c.Env = append(c.Env, alternates(more...))
	}
	c.Stdout = &lines
	done := make(chan error, 1)
	go func() {
		_, err := git.Run(ctx, c, "diff-tree", "-r", "-p", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
			"--diff-algorithm=myers", "-U3", "-O/dev/null", string(base), string(head))
		done <- err
	}()
	if err := errors.Join(meanwhile(), <-done); err != nil {
		return "", err
	}
	lines.flush()
	id := hex.EncodeToString(lines.sum.Sum(nil))
	db.patches.put(base, head, id)
	return id, nil
}
