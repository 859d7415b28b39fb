package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Has reports whether a commit and its root tree are in the store. It looks no
// deeper: see Complete.
func (db *Database) Has(ctx context.Context, o git.OID) bool {
	r := db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(o)
	if err == nil {
		_, err = r.read(c.Tree, "tree", maxTree)
	}
	return err == nil
}

// Tree returns the tree of a commit. Error: ErrNotFound.
func (db *Database) Tree(ctx context.Context, commit git.OID) (git.OID, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(commit)
	return c.Tree, err
}

// ReadFile returns the content of a regular file in a commit, at most limit bytes.
// Errors: ErrNotFound, also when the path is a directory or a symbolic link; ErrTooLarge.
func (db *Database) ReadFile(ctx context.Context, commit git.OID, p git.Path, limit int) ([]byte, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(commit)
	if err != nil {
		return nil, err
	}
	at, err := r.at(c.Tree, string(p))
	if err != nil {
		return nil, err
	}
	if !at.isFile() {
		return nil, fmt.Errorf("file %s in commit %s: %w", p, commit.Short(), git.ErrNotFound)
	}
	raw, err := r.read(git.OID(at.oid), "blob", limit)
	if errors.Is(err, git.ErrTooLarge) {
		return nil, fmt.Errorf("file %s in commit %s: %w", p, commit.Short(), git.ErrTooLarge)
	}
	return raw, err
}

// IsAncestor returns whether commit a is b or one of its ancestors.
func (db *Database) IsAncestor(ctx context.Context, a, b git.OID) (bool, error) {
	_, err := git.Run(ctx, db.ObjectCommand(), "merge-base", "--is-ancestor", string(a), string(b))
	if git.ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// FileChange describes a changed path, with the numbers of git diff --numstat.
type FileChange struct {
	// Path is relative to the root, as git has it: it may hold any byte but
	// NUL.
	Path string
	// Added counts lines, as Deleted does. A changed line is one of each.
	Added   int
	Deleted int // lines
	// Binary says that git sees no lines in the file; then both counts are 0.
	Binary bool
}

// keptChanges is the longest list of changes that is kept in memory.
const keptChanges = 1000

// Changes lists the paths that differ between two commits, sorted by path. Renames
// appear as a deletion and an addition.
func (db *Database) Changes(ctx context.Context, base, head git.OID) ([]FileChange, error) {
	from, to, err := treesOf(ctx, db, base, head) // the same change has more than one commit before it lands
	if err != nil {
		return nil, err
	}
	if list, ok := db.changes.get(from, to); ok {
		return slices.Clone(list), nil
	}
	out, err := git.Run(ctx, db.ObjectCommand(), "diff-tree", "-r", "-z", "--no-renames", "--numstat", string(base), string(head))
	if err != nil {
		return nil, err
	}
	var list []FileChange
	for rec := range bytes.SplitSeq(out, []byte{0}) {
		f := strings.SplitN(string(rec), "\t", 3)
		if len(f) != 3 {
			continue
		}
		c := FileChange{Path: f[2], Binary: f[0] == "-"}
		if !c.Binary {
			if _, err := fmt.Sscan(f[0]+" "+f[1], &c.Added, &c.Deleted); err != nil {
				return nil, fmt.Errorf("diff numbers %q: %w", git.Clip(string(rec)), err)
			}
		}
		list = append(list, c)
	}
	if len(list) <= keptChanges {
		db.changes.put(from, to, slices.Clone(list))
	}
	return list, nil
}

// Diff returns the patch between two commits, with renames found. When it is
// longer than limit bytes it is cut at the end of a line and truncated is true.
// Attributes of the repository have no effect: no external diff and no text
// conversion runs.
func (db *Database) Diff(ctx context.Context, base, head git.OID, limit int) (patch []byte, truncated bool, err error) {
	c := db.ObjectCommand()
	c.Limit = limit
	out, err := git.Run(ctx, c, "diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "-M", string(base), string(head))
	if errors.Is(err, git.ErrTooLarge) {
		return out[:bytes.LastIndexByte(out, '\n')+1], true, nil
	}
	return out, false, err
}

// Commits returns how many commits head has that base does not.
func (db *Database) Commits(ctx context.Context, base, head git.OID) (int, error) {
	out, err := git.Run(ctx, db.ObjectCommand(), "rev-list", "--count", string(head), "^"+string(base))
	if err != nil {
		return 0, err
	}
	var n int
	_, err = fmt.Sscan(string(out), &n)
	return n, err
}

// notFound adds ErrNotFound to git's complaint about an object that it does not have.
func notFound(err error) error {
	if code := git.ExitCode(err); code == 1 || code == 128 {
		return errors.Join(git.ErrNotFound, err)
	}
	return err
}

// Complete reports whether the database has a commit and all objects that it
// needs and have does not. An error of git counts as no: then the objects are
// imported again, which does no harm.
func (db *Database) Complete(ctx context.Context, commit, have git.OID) bool {
	if !db.Has(ctx, commit) {
		return false
	}
	if commit == have {
		return true
	}
	_, err := git.Run(ctx, db.ObjectCommand(), "rev-list", "--objects", "--quiet", string(commit), "^"+string(have))
	return err == nil
}
