package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxBehind limits how many commits of the base branch Forecast reads to find where a task left it. A task that is further
// behind is compared by git merge-tree.
const maxBehind = 200

// Clash names a task under way whose change does not merge with the one that Forecast was asked about.
type Clash struct {
	Task  Name
	Files []string // in conflict, sorted
}

// Forecast returns the tasks whose changes do not merge with the change between base and head, in the order of tasks.
// Conflicts that a task has with base alone are not counted. Tasks that cannot be compared are left out: those whose commit is
// not in the store or belongs to another history. When ctx ends, it returns what it has found so far with the error. No
// checkout is needed, nothing is changed, and git is asked only about files that both sides change.
func (db *Database) Forecast(ctx context.Context, base, head OID, tasks []TaskHead) ([]Clash, error) {
	if len(tasks) == 0 || base == head {
		return nil, nil
	}
	scratch, err := os.MkdirTemp(db.quarantine(), "forecast-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	f := forecast{
		replay: replay{db: db, scratch: scratch, fresh: filepath.Join(scratch, "new")},
		line:   map[OID]OID{}, trees: map[OID]map[string]treeEntry{},
	}
	if err := os.Mkdir(f.fresh, 0o700); err != nil {
		return nil, err
	}
	f.objects = db.readObjects(ctx, f.fresh)
	defer f.objects.close()
	if f.base, err = f.objects.commit(base); err != nil {
		return nil, err
	}
	if f.head, err = f.objects.commit(head); err != nil {
		return nil, err
	}
	f.oldest = f.base
	f.line[f.base.oid] = f.base.tree
	var found []Clash
	for _, t := range tasks {
		files, err := f.with(ctx, t.Commit)
		if (errors.Is(err, ErrNotFound) || exitCode(err) > 0) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return found, err
		}
		if len(files) > 0 {
			found = append(found, Clash{Task: t.Task, Files: files})
		}
	}
	return found, nil
}

// forecast is a running Forecast.
type forecast struct {
	replay

	base, head commitData
	line       map[OID]OID // commits of the base branch, and their trees, as far as they were looked at
	oldest     commitData  // of them
	trees      map[OID]map[string]treeEntry
}

// with returns the files in which the change and another head do not merge.
func (f *forecast) with(ctx context.Context, other OID) ([]string, error) {
	c, err := f.objects.commit(other)
	if err != nil {
		return nil, err
	}
	from, known, err := f.fork(c)
	if err != nil {
		return nil, err
	}
	files, err := f.conflicts(ctx, from, known, f.head, c)
	if err != nil || len(files) == 0 || known && from == f.base.tree {
		return files, err
	}
	outdated, err := f.conflicts(ctx, from, known, f.base, c)
	if err != nil || len(outdated) == 0 {
		return files, err
	}
	mine, err := f.files(ctx)
	return slices.DeleteFunc(files, func(p string) bool { return slices.Contains(outdated, p) && !slices.Contains(mine, p) }), err
}

// fork returns the tree of the commit at which a head left the base branch, or false when that commit is more than maxBehind
// commits ago or behind a merge.
func (f *forecast) fork(c commitData) (OID, bool, error) {
	for range maxBehind {
		for { // down the base branch, as far as it takes
			if tree, ok := f.line[c.oid]; ok {
				return tree, true, nil
			}
			if len(f.line) > maxBehind || len(f.oldest.parents) != 1 {
				break
			}
			older, err := f.objects.commit(f.oldest.parents[0])
			if err != nil {
				return "", false, err
			}
			f.oldest = older
			f.line[older.oid] = older.tree
		}
		if len(c.parents) != 1 {
			break
		}
		var err error
		if c, err = f.objects.commit(c.parents[0]); err != nil {
			return "", false, err
		}
	}
	return "", false, nil
}

// conflicts merges two commits and returns the files in conflict. If known, from is the tree of the commit where they fork.
func (f *forecast) conflicts(ctx context.Context, from OID, known bool, ours, theirs commitData) ([]string, error) {
	if !known {
		_, err := f.mergeCommits(ctx, ours.oid, theirs.oid)
		return inConflict(err)
	}
	_, ok, err := treeMerger{objects: f.objects, seen: f.trees}.merge(from, ours.tree, theirs.tree)
	if err != nil || ok {
		return nil, err
	}
	_, err = f.mergeByGit(ctx, from, ours.tree, theirs.tree)
	return inConflict(err)
}

// inConflict turns a conflict into the files of it.
func inConflict(err error) ([]string, error) {
	if c, ok := errors.AsType[*ConflictError](err); ok {
		return c.Files, nil
	}
	return nil, err
}

// files lists what the change itself touches.
func (f *forecast) files(ctx context.Context) ([]string, error) {
	return names(run(ctx, f.db.ObjectCommand(), "diff-tree", "-r", "-z", "--name-only", "--no-renames", string(f.base.oid), string(f.head.oid)))
}

// mergeCommits has git merge two commits, and find their base itself. The result is in p.fresh.
func (p *replay) mergeCommits(ctx context.Context, left, right OID) (OID, error) {
	c := p.db.ObjectCommand()
	c.env = []string{"GIT_OBJECT_DIRECTORY=" + p.fresh, alternates(p.db.ObjectDir(), p.scratch)}
	c.config = []string{"core.fsync=none"} // flush does it
	var out bytes.Buffer
	c.stdout = &out
	_, err := run(ctx, c, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", string(left), string(right))
	fields := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
	if exitCode(err) == 1 {
		files := slices.Compact(slices.Sorted(slices.Values(fields[1:])))
		return "", &ConflictError{Files: files}
	}
	if err != nil {
		return "", err
	}
	return ParseOID(fields[0])
}

// TaskHead is a task under way and the newest commit that was kept for it.
type TaskHead struct {
	Task   Name
	Commit OID
}
