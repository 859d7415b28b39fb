package checkout

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// snapshot is a working tree that was written to the store as a tree object.
type snapshot struct {
	// tree is empty when it equals that of the head.
	tree git.OID
	// index is the path of the index that describes the tree, for advance.
	index string
	// skipped is the first fault for which a file was left out: a repository
	// inside, or a file above the limits; nil if the tree is complete.
	skipped *git.WorkError
}

// snapshot writes the working tree to the store, seen with our index and our
// git directory. The index is first moved to head, keeping what it knows about
// unchanged files, so only changed ones are read. It works on a copy of the
// index: a snapshot that is cut off changes nothing.
func (c *Checkout) snapshot(ctx context.Context, head git.OID) (snapshot, error) {
	snap := snapshot{index: c.own("index.next")}
	if err := disk.IgnoreMissing(os.Remove(snap.index + ".lock")); err != nil { // of a git that is gone
		return snap, err
	}
	if err := disk.CopyIndex(c.own("index"), snap.index); err != nil {
		return snap, err
	}
	k := c.tree(snap.index)
	if c.pool.indexedAt(string(c.name)) != head {
		if _, err := git.Run(ctx, k, "read-tree", "-i", "-m", string(head)); err != nil {
			return snap, err
		}
	}
	out, err := git.Run(ctx, k, "ls-files", "-z", "-m", "-d", "-o", "--exclude-standard", "--deduplicate")
	if err != nil {
		return snap, err
	}
	paths, skipped, err := c.stageable(strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"))
	if err != nil {
		return snap, err
	}
	snap.skipped = skipped
	if len(paths) == 0 {
		if skipped != nil {
			return snap, skipped
		}
		return snap, nil
	}
	k.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	if _, err := git.Run(ctx, k, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		if git.MachineFailed(err) {
			return snap, err
		}
		return snap, &git.WorkError{Fault: git.Unsafe, Detail: "cannot be staged: " + strings.TrimSpace(git.Stderr(err))}
	}
	return snap, c.writeTree(ctx, head, &snap)
}

// writeTree writes the tree of the snapshot's index, and notes it if it differs
// from head's.
func (c *Checkout) writeTree(ctx context.Context, head git.OID, snap *snapshot) error {
	out, err := git.Run(ctx, c.tree(snap.index), "write-tree")
	if err != nil {
		return err
	}
	tree, err := git.ParseOID(string(bytes.TrimSpace(out)))
	if err != nil {
		return err
	}
	was, err := c.pool.store.Tree(ctx, head)
	if err != nil {
		return err
	}
	if tree != was {
		snap.tree = tree
	}
	return nil
}

// stageable returns the files to stage of those that ls-files found, sorted:
// not our own directory, the files of a repository inside instead of a link to
// it, and nothing above the limits, which count all files together, too.
// skipped describes the first of these.
func (c *Checkout) stageable(found []string) (paths []string, skipped *git.WorkError, err error) {
	total := c.pool.limits.Bytes
	links := make(map[string]bool)
	add := func(p string, size int64) {
		switch {
		case size > c.pool.limits.Blob || size > total || len(paths) >= c.pool.limits.Objects:
			skipped = first(skipped, &git.WorkError{Fault: git.Oversized, Path: p, Detail: fmt.Sprintf("has %d bytes: too many", size)})
		default:
			total -= size
			paths = append(paths, p)
		}
	}
	for _, p := range found {
		if p == "" || objects.IsForge(p) {
			continue
		}
		if dir, ok := strings.CutSuffix(p, "/"); ok {
			skipped = first(skipped, &git.WorkError{Fault: git.Unsafe, Path: dir, Detail: "is a git repository of its own"})
			if err := c.filesOf(dir, add); err != nil {
				return nil, nil, err
			}
			continue
		}
		info, err := os.Lstat(filepath.Join(c.Dir(), p))
		switch {
		case err != nil: // deleted, or a directory of it became a file
			add(p, 0)
		case info.Mode()&fs.ModeSymlink != 0:
			links[p] = true
			add(p, info.Size())
		case info.Mode().IsRegular() || info.IsDir():
			add(p, info.Size())
		}
	}
	slices.Sort(paths)
	paths = slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return beyond(links, p) })
	return paths, skipped, nil
}

// beyond returns whether a directory of the path became a symbolic link, which replaces
// all that was in it.
func beyond(links map[string]bool, p string) bool {
	for i := strings.LastIndexByte(p, '/'); i >= 0; i = strings.LastIndexByte(p[:i], '/') {
		if links[p[:i]] {
			return true
		}
	}
	return false
}

// filesOf calls add with each file of a repository inside, apart from its .git:
// an agent that ran git init in a folder must not lose its work there.
func (c *Checkout) filesOf(dir string, add func(string, int64)) error {
	return filepath.WalkDir(filepath.Join(c.Dir(), dir), func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.EqualFold(d.Name(), ".git") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0 {
			rel, err := filepath.Rel(c.Dir(), full)
			if err != nil {
				return err
			}
			add(rel, info.Size())
		}
		return nil
	})
}

// first returns the fault that was found before, if there was one.
func first(a, b *git.WorkError) *git.WorkError {
	if a != nil {
		return a
	}
	return b
}

// advance moves the checkout to a commit that the service made: the index becomes its
// own, and the agent gets a new .git.
func (c *Checkout) advance(commit git.OID, index string) error {
	c.pool.setIndexed(string(c.name), "") // until all is done: a failure in between leaves an index that is not the head's
	if err := os.Rename(index, c.own("index")); err != nil {
		return err
	}
	if err := c.pool.throw(filepath.Join(c.Dir(), ".git")); err != nil {
		return err
	}
	c.pool.setIndexed(string(c.name), commit)
	c.head, c.committed = commit, true
	if err := c.freshGit(); err != nil {
		return err
	}
	return c.save()
}
