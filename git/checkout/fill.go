package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// files is a working tree together with the index that the service wrote for
// it. The index is outside of the tree, where no agent can reach it.
type files struct {
	pool  *Pool
	dir   string
	index string
}

// command returns a git command on the files that uses this index and no .git
// of the working tree. Its child holds the pool's lock.
func (f files) command() git.Command {
	k := f.pool.store.ObjectCommand()
	k.Dir = f.dir
	k.Env = append(k.Env, "GIT_WORK_TREE="+f.dir, "GIT_INDEX_FILE="+f.index)
	k.Hold = []*os.File{f.pool.lock}
	return k
}

// fill checks a commit out into an empty directory, or, if used, into one that was
// filled before and has been worked in; then had is the commit whose tree the index has,
// empty if that is not known. After a crash at any point it can be called again.
func (f files) fill(ctx context.Context, at git.OID, used bool, had git.OID) error {
	k := f.command()
	k.Config = []string{"checkout.workers=0", "core.fsync=none"} // files that a crash makes us write again anyway
	if used {
		return f.follow(ctx, k, had, at)
	}
	_, err := git.Run(ctx, k, "read-tree", "--reset", "-u", string(at))
	return err
}

// follow brings files to another commit. While git updates the index, one walk over the
// tree compares every file with it and removes what it does not have; then git writes
// the files that differ.
func (f files) follow(ctx context.Context, k git.Command, had, at git.OID) error {
	var index indexFile
	read := make(chan error, 1)
	go func() {
		var err error
		index, err = readIndex(f.index)
		read <- err
	}()
	changes, err := f.changes(ctx, k, had, at)
	if err := errors.Join(<-read, err); err != nil {
		return err
	}
	if err := index.apply(changes); err != nil {
		return err
	}
	moved := make(chan error, 1)
	go func() { moved <- updateIndex(ctx, k, changes) }()
	stale, err := f.clean(index)
	if err := errors.Join(err, <-moved); err != nil || len(stale) == 0 {
		return err
	}
	k.Stdin = strings.NewReader(strings.Join(stale, "\x00"))
	_, err = git.Run(ctx, k, "checkout-index", "-q", "-f", "-u", "-z", "--stdin")
	return err
}

// changes returns how the tree of a commit differs from the index, which has
// that of the commit had if that is known.
func (f files) changes(ctx context.Context, k git.Command, had, at git.OID) ([]git.RawChange, error) {
	if had != "" {
		if changes, err := f.pool.store.RawChanges(ctx, had, at); err == nil {
			return changes, nil
		}
	}
	return git.RawChanges(git.Run(ctx, k, "diff-index", "--cached", "-R", "-z", "--raw", "--no-renames", "--no-abbrev", string(at)))
}

// updateIndex applies the changes to the index and leaves the files alone. The
// new entries have no stat fields, so git takes their files for changed until
// it has written them.
func updateIndex(ctx context.Context, k git.Command, changes []git.RawChange) error {
	if len(changes) == 0 {
		return nil
	}
	var in bytes.Buffer
	for _, c := range changes {
		fmt.Fprintf(&in, "%s %s\t%s\x00", c.NewMode, c.NewOID, c.Path)
	}
	k.Stdin = &in
	_, err := git.Run(ctx, k, "update-index", "-z", "--index-info")
	return err
}
