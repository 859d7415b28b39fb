package objects

import (
	"context"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// RawChanges lists the files that differ between two commits, sorted by path,
// as git diff-tree -r --raw --no-renames does, without a process of its own.
// Errors are those of git for commits that are not in the database, and git.ErrTooLarge for more
// changes than fit into the output of a command.
func (db *Database) RawChanges(ctx context.Context, base, head git.OID) ([]git.RawChange, error) {
	return db.rawChanges(ctx, base, head, git.MaxOutput)
}

// rawChanges is RawChanges with a limit on the output, in bytes.
func (db *Database) rawChanges(ctx context.Context, base, head git.OID, limit int) ([]git.RawChange, error) {
	from, to, err := treesOf(ctx, db, base, head)
	if err != nil {
		return nil, err
	}
	r := db.NewReader(ctx)
	defer r.Close()
	d := rawDiff{trees: treeMerger{objects: r}, room: limit}
	ok, err := d.compare("", treeEntry{"40000", string(from)}, treeEntry{"40000", string(to)})
	if err != nil {
		return nil, err
	}
	if !ok {
		c := db.ObjectCommand()
		c.Limit = limit
		return git.RawChanges(git.Run(ctx, c, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", string(base), string(head)))
	}
	slices.SortFunc(d.changes, func(a, b git.RawChange) int { return strings.Compare(a.Path, b.Path) })
	return d.changes, nil
}

// rawDiff collects the differences of two trees.
type rawDiff struct {
	trees   treeMerger // for its reading
	changes []git.RawChange
	// room is how many bytes git may still print about them.
	room int
}

// rawLine is how many bytes git prints of a change, beside its path.
const rawLine = len(":100644 100644  A\x00\x00 ") + 2*len(noOID)

// take takes the room for one path; without it there are too many. A directory takes as
// much, though git prints nothing of it: a few trees can name each other in so many ways that
// going through them never ends.
func (d *rawDiff) take(path string) error {
	if d.room -= rawLine + len(path); d.room < 0 {
		return &git.Error{Args: []string{"diff-tree"}, ExitCode: -1, Err: git.ErrTooLarge}
	}
	return nil
}

// compare adds the differences below a directory; base or head is the zero
// value where there is no such directory. It returns false when git must do it:
// for malformed trees, and for modes as old versions of git wrote them.
func (d *rawDiff) compare(dir string, base, head treeEntry) (bool, error) {
	if err := d.take(dir); err != nil {
		return false, err
	}
	var sides [2]map[string]treeEntry
	for i, e := range []treeEntry{base, head} {
		if e == (treeEntry{}) {
			continue
		}
		var ok bool
		var err error
		if sides[i], ok, err = d.trees.read(git.OID(e.oid)); err != nil || !ok {
			return false, err
		}
	}
	for name, is := range sides[1] {
		if ok, err := d.entry(dir+name, sides[0][name], is); err != nil || !ok {
			return false, err
		}
	}
	for name, was := range sides[0] {
		if _, both := sides[1][name]; both {
			continue
		}
		if ok, err := d.entry(dir+name, was, treeEntry{}); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// entry adds the difference of one entry, which may be a directory before,
// after or both. Its results are those of compare.
func (d *rawDiff) entry(path string, was, is treeEntry) (bool, error) {
	if was == is {
		return true, nil
	}
	var dirs, files [2]treeEntry
	for i, e := range []treeEntry{was, is} {
		switch {
		case e.isTree():
			dirs[i] = e
		case e == treeEntry{} || e.mode == "100644" || e.mode == "100755" || e.isLink() || e.mode == "160000":
			files[i] = e
		default:
			return false, nil
		}
	}
	if files[0] != files[1] {
		if err := d.take(path); err != nil {
			return false, err
		}
		c := git.RawChange{OldMode: noMode, NewMode: noMode, OldOID: noOID, NewOID: noOID, Path: path}
		if files[0] != (treeEntry{}) {
			c.OldMode, c.OldOID = files[0].mode, files[0].oid
		}
		if files[1] != (treeEntry{}) {
			c.NewMode, c.NewOID = files[1].mode, files[1].oid
		}
		d.changes = append(d.changes, c)
	}
	if dirs[0].oid == dirs[1].oid {
		return true, nil
	}
	return d.compare(path+"/", dirs[0], dirs[1])
}

// What git writes in the place of a file that is not there.
const (
	noMode = "000000"
	noOID  = "0000000000000000000000000000000000000000"
)
