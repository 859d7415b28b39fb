package projection

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
)

// Target is a file as it should be.
type Target struct {
	Path    string
	Content []byte
	// Edits says that a person's edits of the file are read: it is an intent's own
	// file, and its last line, which Write adds, is the revision.
	Edits    bool
	Revision int64
}

// replacement is a version that is about to be put in place of another.
type replacement struct {
	Target

	data   []byte      // the whole content, with the revision
	expect disk.Digest // of the version that it replaces; zero: there is no file
}

// Tidy gives back what editors wrote into files that were swapped out, once these have
// lingered.
func (f *Files) Tidy() error { return f.exchange.tidy() }

// Write brings files up to date, recording their versions first. A person's version
// is left alone where edits are read; elsewhere it is kept, and is a problem. That a
// person was quicker is no error: the file is not Settled then.
func (f *Files) Write(list []Target) ([]person.Problem, error) {
	if err := f.Tidy(); err != nil {
		return nil, err
	}
	var todo []replacement
	var problems []person.Problem
	for _, t := range list {
		r, p, err := f.plan(t)
		if err != nil {
			return problems, err
		}
		if p != nil {
			problems = append(problems, *p)
		}
		if r != nil {
			todo = append(todo, *r)
		}
	}
	var lines []indexLine
	for _, r := range todo {
		lines = append(lines, f.versions(r)...)
	}
	if err := f.index.add(true, lines...); err != nil {
		return problems, err
	}
	f.disk.Reached("recorded")
	dirs := map[string]bool{}
	for _, r := range todo {
		dirs[path.Dir(r.Path)] = true
		if err := f.put(r); err != nil {
			return problems, fmt.Errorf("write %s: %w", layout.Shown(r.Path), err)
		}
	}
	return problems, f.disk.Sync(slices.Collect(maps.Keys(dirs))...)
}

// Replace puts a version of a file in place of the one that was just read, whoever
// wrote that. It reports false if a person changed the file meanwhile.
func (f *Files) Replace(rel string, before, next []byte) (bool, error) {
	r := replacement{Target: Target{Path: rel}, data: next, expect: disk.DigestOf(before)}
	if err := f.index.add(true, f.versions(r)...); err != nil {
		return false, err
	}
	f.disk.Reached("goal recorded")
	if done, err := f.exchange.install(rel, next, r.expect); err != nil || !done {
		return false, err
	}
	return true, f.disk.Sync(path.Dir(rel))
}

// versions returns the lines to add to the index before a file is replaced: the
// version that goes, in case it is a person's that was decided or kept, and the one
// that comes.
func (f *Files) versions(r replacement) []indexLine {
	var lines []indexLine
	if r.expect != (disk.Digest{}) && !f.index.ours(r.Path, r.expect) {
		lines = append(lines, indexLine{Path: r.Path, SHA256: r.expect.String()})
	}
	if d := disk.DigestOf(r.data); !f.index.latest(r.Path, d) || len(lines) > 0 {
		lines = append(lines, indexLine{Path: r.Path, SHA256: d.String()})
	}
	return lines
}

// plan compares a file to what it should be. It returns nil if there is nothing to
// write, or nothing that may be overwritten.
func (f *Files) plan(t Target) (*replacement, *person.Problem, error) {
	if f.IsCurrent(t.Path) && f.current[t.Path] == disk.DigestOf(t.Content) {
		return nil, nil, nil
	}
	f.Recheck(t.Path)
	r := &replacement{Target: t, data: t.Content}
	if t.Edits {
		r.data = withRevision(t.Content, t.Revision)
	}
	now, _, err := f.disk.Read(t.Path, disk.MaxOther)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil, nil
	case err != nil:
		p := person.Unreadable(layout.Shown(t.Path), err)
		return nil, &p, nil
	}
	r.expect = disk.DigestOf(now)
	if same(t, now) {
		if adopted, err := f.adopt(t, now); adopted || err != nil {
			return nil, nil, err
		}
		return r, nil, nil // what an edit led to: from now on a version of its own
	}
	if f.exchange.worthless(t.Path, now) {
		return r, nil, nil
	}
	if t.Edits {
		return f.planEdited(r, now)
	}
	kept, err := f.exchange.keep(t.Path, now)
	if err != nil || !f.Knows(t.Path) {
		return r, nil, err
	}
	return r, &person.Problem{
		Path: layout.Shown(t.Path), Reason: "edits to this file have no effect; it was restored",
		Hint: "your copy: " + layout.Shown(kept),
	}, nil
}

// planEdited lets a person's version be replaced once its events were decided. What
// the events do not carry, such as comments, is kept; so is an edit whose starting
// point was not known.
func (f *Files) planEdited(r *replacement, now []byte) (*replacement, *person.Problem, error) {
	if f.released[r.Path] != r.expect {
		return nil, nil, nil
	}
	if !f.bases.plain(r.Path, now) {
		if _, err := f.exchange.keep(r.Path, now); err != nil {
			return nil, nil, err
		}
	}
	return r, nil, nil
}

// same reports whether a file holds the target, whatever its revision.
func same(t Target, now []byte) bool {
	if !t.Edits {
		return bytes.Equal(now, t.Content)
	}
	content, _, ok := SplitRevision(now)
	return ok && bytes.Equal(content, t.Content)
}

// adopt recognises a file that holds what it should as ours. It reports false for an
// intent's file whose revision stands for something else already.
func (f *Files) adopt(t Target, now []byte) (bool, error) {
	d := disk.DigestOf(now)
	if !f.index.ours(t.Path, d) && t.Edits {
		_, revision, _ := SplitRevision(now)
		if _, known := f.bases.get(layout.Owner(t.Path), revision); known {
			return false, nil
		}
		if err := f.bases.save(t.Path, revision, now); err != nil {
			return false, err
		}
	}
	f.current[t.Path] = disk.DigestOf(t.Content)
	if f.index.latest(t.Path, d) {
		return true, nil
	}
	return true, f.Record(t.Path, d)
}

// put writes one file whose versions are recorded. If a person was quicker, the file
// is as the person left it, and the next call looks at it again.
func (f *Files) put(r replacement) error {
	if r.Edits {
		if err := f.bases.save(r.Path, r.Revision, r.data); err != nil {
			return err
		}
	}
	if done, err := f.exchange.install(r.Path, r.data, r.expect); err != nil || !done {
		return err
	}
	f.current[r.Path] = disk.DigestOf(r.Content)
	delete(f.released, r.Path)
	return nil
}
