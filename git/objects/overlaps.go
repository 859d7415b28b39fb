package objects

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// maxBehind limits how many commits of the base branch Overlaps reads to find where a
// task left it. A task that is further behind is compared by git merge-tree.
const maxBehind = 200

// Overlap names a task under way whose change does not merge with the one that
// Overlaps was asked about.
type Overlap struct {
	Task git.Name
	// Files are those in conflict, sorted.
	Files []string
}

// Overlaps returns the tasks whose changes do not merge with the change between base
// and head, in the order of tasks. Conflicts that a task has with base alone are not
// counted. Tasks that cannot be compared are left out: those whose commit is not in the
// store or belongs to another history. When ctx ends, it returns what it has found so
// far with the error. No checkout is needed, nothing is changed, and git is asked only
// about files that both sides change.
func (db *Database) Overlaps(ctx context.Context, base, head git.OID, tasks []TaskHead) ([]Overlap, error) {
	if len(tasks) == 0 || base == head {
		return nil, nil
	}
	scratch, err := os.MkdirTemp(db.hub.quarantine(), "overlap-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	f := overlaps{
		replay: replay{db: db, scratch: scratch, fresh: filepath.Join(scratch, "new")},
		line:   map[git.OID]git.OID{}, trees: map[git.OID]map[string]treeEntry{},
	}
	if err := os.Mkdir(f.fresh, 0o700); err != nil {
		return nil, err
	}
	f.objects = db.NewReader(ctx, f.fresh)
	defer f.objects.Close()
	if f.base, err = f.objects.Commit(base); err != nil {
		return nil, err
	}
	if f.head, err = f.objects.Commit(head); err != nil {
		return nil, err
	}
	f.oldest = f.base
	f.line[f.base.OID] = f.base.Tree
	var found []Overlap
	for _, t := range tasks {
		files, err := f.with(ctx, t.Commit)
		if (errors.Is(err, git.ErrNotFound) || git.ExitCode(err) > 0) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return found, err
		}
		if len(files) > 0 {
			found = append(found, Overlap{Task: t.Task, Files: files})
		}
	}
	return found, nil
}

// overlaps is one call of Overlaps. It caches what it reads for one task, because
// most tasks begin at the same few commits.
type overlaps struct {
	replay

	base, head Commit
	// line has commits of the base branch, and their trees, as far as they were
	// looked at.
	line map[git.OID]git.OID
	// oldest is the last of line, from which it is continued.
	oldest Commit
	// trees has the entries of trees that were read.
	trees map[git.OID]map[string]treeEntry
}

// with returns the files in which the change and another head do not merge. A
// conflict that the other head has with base alone is not the change's doing:
// it counts only for files that the change touches.
func (f *overlaps) with(ctx context.Context, other git.OID) ([]string, error) {
	c, err := f.objects.Commit(other)
	if err != nil {
		return nil, err
	}
	from, known, err := f.fork(c)
	if err != nil {
		return nil, err
	}
	files, err := f.conflicts(ctx, from, known, f.head, c)
	if err != nil || len(files) == 0 || known && from == f.base.Tree {
		return files, err
	}
	outdated, err := f.conflicts(ctx, from, known, f.base, c)
	if err != nil || len(outdated) == 0 {
		return files, err
	}
	mine, err := f.files(ctx)
	return slices.DeleteFunc(files, func(p string) bool { return slices.Contains(outdated, p) && !slices.Contains(mine, p) }), err
}

// fork returns the tree of the commit at which a head left the base branch, or false
// when that commit is more than maxBehind commits ago or behind a merge.
func (f *overlaps) fork(c Commit) (git.OID, bool, error) {
	for range maxBehind {
		for { // down the base branch, as far as it takes
			if tree, ok := f.line[c.OID]; ok {
				return tree, true, nil
			}
			if len(f.line) > maxBehind || len(f.oldest.Parents) != 1 {
				break
			}
			older, err := f.objects.Commit(f.oldest.Parents[0])
			if err != nil {
				return "", false, err
			}
			f.oldest = older
			f.line[older.OID] = older.Tree
		}
		if len(c.Parents) != 1 {
			break
		}
		var err error
		if c, err = f.objects.Commit(c.Parents[0]); err != nil {
			return "", false, err
		}
	}
	return "", false, nil
}

// conflicts merges two commits and returns the files in conflict. If known, from is the
// tree of the commit where they fork.
func (f *overlaps) conflicts(ctx context.Context, from git.OID, known bool, ours, theirs Commit) ([]string, error) {
	if !known {
		_, err := f.mergeCommits(ctx, ours.OID, theirs.OID)
		return inConflict(err)
	}
	_, ok, err := treeMerger{objects: f.objects, seen: f.trees}.merge(from, ours.Tree, theirs.Tree)
	if err != nil || ok {
		return nil, err
	}
	_, err = f.mergeByGit(ctx, from, ours.Tree, theirs.Tree)
	return inConflict(err)
}

// inConflict returns the files of a conflict, or the error if it is another
// one.
func inConflict(err error) ([]string, error) {
	if c, ok := errors.AsType[*git.ConflictError](err); ok {
		return c.Files, nil
	}
	return nil, err
}

// files lists the paths that the change itself touches.
func (f *overlaps) files(ctx context.Context) ([]string, error) {
	return git.SplitNUL(git.Run(ctx, f.db.ObjectCommand(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", string(f.base.OID), string(f.head.OID)))
}

// mergeCommits has git merge two commits, and find their base itself. The result is in p.fresh.
func (p *replay) mergeCommits(ctx context.Context, left, right git.OID) (git.OID, error) {
	c := p.db.ObjectCommand()
	c.Env = []string{"GIT_OBJECT_DIRECTORY=" + p.fresh, alternates(p.db.ObjectDir(), p.scratch)}
	c.Config = []string{"core.fsync=none"} // flush does it
	var out bytes.Buffer
	c.Stdout = &out
	_, err := git.Run(ctx, c, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", string(left), string(right))
	fields := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	if git.ExitCode(err) == 1 {
		files := slices.Compact(slices.Sorted(slices.Values(fields[1:])))
		return "", &git.ConflictError{Files: files}
	}
	if err != nil {
		return "", err
	}
	return git.ParseOID(fields[0])
}

// TaskHead is a task under way and the newest commit that was kept for it.
// TaskHeads of package store lists them.
type TaskHead struct {
	Task   git.Name
	Commit git.OID
}
