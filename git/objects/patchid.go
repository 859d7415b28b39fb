package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

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
	p := db.beginPatch(ctx)
	defer p.cancel()
	return p.between(trees[0], trees[1], func() error { return nil })
}

// patch is a running git diff-tree that waits for the names of the two trees to
// compare. So git starts while its caller still makes the second tree.
type patch struct {
	// in is git's standard input.
	in  *io.PipeWriter
	sum patchLines
	// done gets git's error, once.
	done chan error
}

// beginPatch starts a patch; more are object directories to read from, beside
// the store's. The caller ends it by between or cancel.
func (db *Database) beginPatch(ctx context.Context, more ...string) *patch {
	r, w := io.Pipe()
	p := &patch{in: w, sum: patchLines{sum: sha256.New()}, done: make(chan error, 1)}
	c := db.ObjectCommand()
	if len(more) > 0 {
		c.Env = append(c.Env, alternates(more...))
	}
	c.Stdin, c.Stdout = r, &afterLine{w: &p.sum}
	go func() {
		_, err := git.Run(ctx, c, "diff-tree", "--stdin", "-r", "-p", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv",
			"--diff-algorithm=myers", "-U3", "-O/dev/null")
		p.done <- errors.Join(err, r.Close())
	}()
	return p
}

// between returns the patch id of two trees, and calls meanwhile while git
// works.
func (p *patch) between(base, head git.OID, meanwhile func() error) (string, error) {
	_, err := fmt.Fprintf(p.in, "%s %s\n", base, head)
	p.cancel()
	if err := errors.Join(meanwhile(), <-p.done, err); err != nil {
		return "", err
	}
	p.sum.flush()
	return hex.EncodeToString(p.sum.sum.Sum(nil)), nil
}

// cancel tells git that no more trees come, which ends it. It may be called
// again.
func (p *patch) cancel() { _ = p.in.Close() }

// afterLine drops the first line, in which git repeats what it was asked.
type afterLine struct {
	w     io.Writer
	begun bool
}

// Write passes on what comes after the first line, however it is cut into calls.
func (a *afterLine) Write(b []byte) (int, error) {
	rest := b
	if !a.begun {
		if _, rest, a.begun = bytes.Cut(b, []byte{'\n'}); !a.begun {
			return len(b), nil
		}
	}
	_, err := a.w.Write(rest)
	return len(b), err
}
