package forgedir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Projected returns the journal sequence up to which an intent's files are
// written; 0 if some are missing or hold a person's edit, so that the intent
// has to be written again.
func (w *Workspace) Projected(id forge.IntentID) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.index.seqs[id]
}

// Write brings the files of an intent up to date. A file that holds a person's
// edit which was not decided yet is left alone and written by a later call.
// Where nothing reads edits, the person's version is kept and named as a
// problem, and the file is written.
func (w *Workspace) Write(v forge.View) ([]Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := v.Intent.ID
	if _, err := forge.ParseIntentID(string(id)); err != nil {
		return nil, err
	}
	w.noteTasks(&v)
	list, err := targets(&v)
	if err != nil {
		return nil, err
	}
	if err := w.loadNotes(); err != nil {
		return nil, err
	}
	notes, changed, err := w.notes.with(id, v.Observations)
	if err != nil {
		return nil, err
	}
	if missing := len(notes.entries) > 0 && w.settled[observations] == (digest{}); changed || missing {
		list = append(list, target{rel: observations, content: notes.bytes()})
	}
	problems, err := w.write(list)
	if err != nil {
		return problems, err
	}
	w.notes = notes
	if err := w.removeStale(id, list); err != nil {
		return problems, err
	}
	more, done, err := w.writeGoal(&v)
	problems = append(problems, more...)
	if err != nil {
		return problems, err
	}
	seq := v.Seq
	if !done {
		seq = 0
	}
	return problems, w.projected(id, seq, list)
}

// projected notes how far the intent is written, if all of it is.
func (w *Workspace) projected(id forge.IntentID, seq uint64, list []target) error {
	for _, t := range list {
		if w.settled[t.rel] == (digest{}) {
			seq = 0
		}
	}
	if w.index.seqs[id] == seq {
		return nil
	}
	return w.index.add(false, indexLine{Intent: id, Seq: seq})
}

// replacement is a version that is about to be put in place of another.
type replacement struct {
	target
	data   []byte
	expect digest // of what it replaces; zero: nothing
}

// write puts files in place. Folders that a person removed meanwhile are made.
func (w *Workspace) write(list []target) ([]Problem, error) {
	problems, err := w.writeAll(list)
	if !errors.Is(err, fs.ErrNotExist) {
		return problems, err
	}
	if err := w.renew(); err != nil {
		return problems, err
	}
	more, err := w.writeAll(list)
	return append(problems, more...), err
}

// writeAll puts files in place, recording their versions first.
func (w *Workspace) writeAll(list []target) ([]Problem, error) {
	if err := w.tidy(); err != nil {
		return nil, err
	}
	var todo []replacement
	var problems []Problem
	for _, t := range list {
		r, p, err := w.plan(t)
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
		lines = append(lines, w.versions(r)...)
	}
	if err := w.index.add(true, lines...); err != nil {
		return problems, err
	}
	w.reached("recorded")
	dirs := map[string]bool{}
	for _, r := range todo {
		dirs[path.Dir(r.rel)] = true
		if err := w.put(r); err != nil {
			return problems, fmt.Errorf("write %s: %w", shown(r.rel), err)
		}
	}
	return problems, w.syncDirs(slices.Collect(maps.Keys(dirs))...)
}

// versions returns what to remember before a file is replaced: the version
// that goes, in case it is a person's that was decided or kept, and the one
// that comes.
func (w *Workspace) versions(r replacement) []indexLine {
	var lines []indexLine
	if r.expect != (digest{}) && !w.index.ours(r.rel, r.expect) {
		lines = append(lines, indexLine{Path: r.rel, SHA256: r.expect.String()})
	}
	if d := digestOf(r.data); !w.index.latest(r.rel, d) || len(lines) > 0 {
		lines = append(lines, indexLine{Path: r.rel, SHA256: d.String()})
	}
	return lines
}

// plan compares a file to what it should be. It returns nil if there is
// nothing to write, or nothing that may be overwritten.
func (w *Workspace) plan(t target) (*replacement, *Problem, error) {
	if w.settled[t.rel] != (digest{}) && w.settled[t.rel] == digestOf(t.content) {
		return nil, nil, nil
	}
	delete(w.settled, t.rel)
	r := &replacement{target: t, data: t.content}
	if t.edits {
		r.data = withRevision(t.content, t.revision)
	}
	now, _, err := w.read(t.rel, maxNotesBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil, nil
	case err != nil:
		p := unreadable(shown(t.rel), err)
		return nil, &p, nil
	}
	r.expect = digestOf(now)
	if same(t, now) {
		if adopted, err := w.adopt(t, now); adopted || err != nil {
			return nil, nil, err
		}
		return r, nil, nil // what an edit led to: from now on a version of its own
	}
	if len(now) == 0 || w.index.ours(t.rel, r.expect) {
		return r, nil, nil
	}
	if t.edits {
		return w.planEdited(r, now)
	}
	kept, err := w.keep(t.rel, now)
	if err != nil || !w.index.knows(t.rel) {
		return r, nil, err
	}
	return r, &Problem{
		Path: shown(t.rel), Reason: "edits to this file have no effect; it was restored",
		Hint: "your copy: " + shown(kept),
	}, nil
}

// planEdited lets a person's version be replaced once its events were decided.
// What the events do not carry, such as comments, is kept; so is an edit whose
// starting point was not known.
func (w *Workspace) planEdited(r *replacement, now []byte) (*replacement, *Problem, error) {
	if w.imported[r.rel] != r.expect {
		return nil, nil, nil
	}
	if !w.plain(r.rel, now) {
		if _, err := w.keep(r.rel, now); err != nil {
			return nil, nil, err
		}
	}
	return r, nil, nil
}

// same reports whether a file holds the target, whatever its revision.
func same(t target, now []byte) bool {
	if !t.edits {
		return bytes.Equal(now, t.content)
	}
	content, _, ok := splitRevision(now)
	return ok && bytes.Equal(content, t.content)
}

// adopt recognises a file that holds what it should as ours. It reports false
// for an intent's file whose revision stands for something else already.
func (w *Workspace) adopt(t target, now []byte) (bool, error) {
	d := digestOf(now)
	if !w.index.ours(t.rel, d) && t.edits {
		_, revision, _ := splitRevision(now)
		if _, known := w.base(ownerOf(t.rel), revision); known {
			return false, nil
		}
		if err := w.saveBase(t.rel, revision, now); err != nil {
			return false, err
		}
	}
	w.settled[t.rel] = digestOf(t.content)
	if w.index.latest(t.rel, d) {
		return true, nil
	}
	return true, w.index.add(false, indexLine{Path: t.rel, SHA256: d.String()})
}

// put writes one file. That a person was quicker is no error: the file is as
// the person left it, and the next call looks at it again.
func (w *Workspace) put(r replacement) error {
	if r.edits {
		if err := w.saveBase(r.rel, r.revision, r.data); err != nil {
			return err
		}
	}
	if err := w.stage(r.rel, r.data); err != nil {
		return err
	}
	if done, err := w.install(r.rel, r.expect); err != nil || !done {
		return err
	}
	w.settled[r.rel] = digestOf(r.content)
	delete(w.imported, r.rel)
	delete(w.refusals, r.rel)
	return nil
}
