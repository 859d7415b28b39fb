package objects

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge/git"
)

// SignCommit returns a commit that differs from another one in its signature
// alone, which sign returns for the content of the object without it. The same
// signature gives the same commit. The caller Keeps it.
func (db *Database) SignCommit(ctx context.Context, o git.OID, sign func(object []byte) (string, error)) (git.OID, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(o)
	if err != nil {
		return "", err
	}
	if c.signature, err = sign(c.encode()); err != nil {
		return "", fmt.Errorf("sign commit %s: %w", o.Short(), err)
	}
	return WriteCommit(db.ObjectDir(), c, true)
}

// WriteBlob stores a file's content, durable, and returns its name. No ref names
// it yet: the caller keeps it.
func (db *Database) WriteBlob(content []byte) (git.OID, error) {
	return writeObject(db.ObjectDir(), "blob", content, true)
}

// Blob returns the content of a blob, at most limit bytes. Errors: ErrNotFound,
// also when the object is no blob; ErrTooLarge beside it.
func (r *Reader) Blob(o git.OID, limit int) ([]byte, error) { return r.read(o, "blob", limit) }

// RawCommit returns the content of a commit object, byte by byte, and makes sure that
// it is the one of that name: git itself does not look at that again for what is on
// the disk. Error: ErrNotFound, also when the object is no commit.
func (r *Reader) RawCommit(o git.OID) ([]byte, error) {
	raw, err := r.read(o, "commit", maxCommit)
	if err != nil {
		return nil, err
	}
	if nameOf(append(fmt.Appendf(nil, "commit %d\x00", len(raw)), raw...)) != o {
		return nil, fmt.Errorf("commit %s: its content is not of that name; see git fsck", o)
	}
	return raw, nil
}
