package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// EntryKind is the kind of a path of a commit.
type EntryKind string

// The kinds of entries.
const (
	EntryNone      EntryKind = ""
	EntryFile      EntryKind = "file"
	EntryDirectory EntryKind = "directory"
	EntryLink      EntryKind = "symbolic link"
	EntrySubmodule EntryKind = "submodule"
)

// Entry returns the kind of a path of a commit; EntryNone if there is nothing, also
// below a symbolic link, which is not followed.
func (db *Database) Entry(ctx context.Context, commit git.OID, p git.Path) (EntryKind, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(commit)
	if err != nil {
		return EntryNone, err
	}
	e, err := r.at(c.Tree, string(p))
	switch {
	case err != nil:
		return EntryNone, err
	case e.isTree():
		return EntryDirectory, nil
	case e.isLink():
		return EntryLink, nil
	case e.isFile():
		return EntryFile, nil
	case e.mode == "":
		return EntryNone, nil
	}
	return EntrySubmodule, nil
}

// Differs reports whether a path is another entry in one commit than in the other: other content,
// another mode, or only in one of them.
func (db *Database) Differs(ctx context.Context, a, b git.OID, p git.Path) (bool, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	var sides [2]treeEntry
	for i, o := range []git.OID{a, b} {
		c, err := r.Commit(o)
		if err != nil {
			return false, err
		}
		if sides[i], err = r.at(c.Tree, string(p)); err != nil {
			return false, err
		}
	}
	return sides[0] != sides[1], nil
}

// Lines is a range of lines, from 1, both ends included.
type Lines struct{ From, To int }

// ChangedLines returns the lines of a path that a change adds, numbered as in head,
// and those that it removes, numbered as in base. A binary file has none.
func (db *Database) ChangedLines(ctx context.Context, base, head git.OID, p git.Path) (added, removed []Lines, err error) {
	out, err := git.Run(ctx, db.ObjectCommand(), "--literal-pathspecs", "diff-tree", "-r", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv",
		string(base), string(head), "--", string(p))
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(out) {
		// Without context, each line of a file begins with + or -.
		if f := bytes.Fields(line); len(f) >= 3 && string(f[0]) == "@@" {
			removed, added = appendHunk(removed, f[1]), appendHunk(added, f[2])
		}
	}
	return added, removed, nil
}

// appendHunk adds the lines of one side of a hunk, such as "-3" or "+5,2".
func appendHunk(list []Lines, side []byte) []Lines {
	start, _, _ := bytes.Cut(side[1:], []byte{','})
	from, err := strconv.Atoi(string(start))
	n := patchid.HunkCount(side)
	if err != nil || n == 0 {
		return list
	}
	return append(list, Lines{from, from + n - 1})
}

// Contains returns the first regular file of a commit, at or below a path, that has a text of
// one line; empty if none has it. An empty path is the whole tree. What symbolic links and
// submodules lead to is not searched.
func (db *Database) Contains(ctx context.Context, commit git.OID, below git.Path, text string) (where string, err error) {
	args := []string{
		"--literal-pathspecs", "grep", "--fixed-strings", "--text", "--no-textconv",
		"--files-with-matches", "--null", "--threads=1", "-e", text, string(commit),
	}
	if below != "" {
		args = append(args, "--", string(below))
	}
	out, err := git.Run(ctx, db.ObjectCommand(), args...)
	var failed *git.Error
	if errors.As(err, &failed) && failed.ExitCode == 1 {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("search for a text in commit %s: %w", commit.Short(), err)
	}
	first, _, _ := bytes.Cut(out, []byte{0})
	_, path, _ := bytes.Cut(first, []byte{':'}) // commit:path
	return string(path), nil
}
