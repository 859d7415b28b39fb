package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// problemsFile has the problems of a person's files, for other processes. It exists
// only while there are some.
const problemsFile = ".forge/problems.json"

// draftsDir is the folder of drafts, relative to the root.
var draftsDir = filepath.Join(layout.Dir, layout.Drafts)

// problems are those of a person's files, by the purpose for which the files
// were read. Each reading replaces those of its own purpose.
type problems struct {
	drafts, edits, state []forgedir.Problem
	// kept has problems that were found while the files of an intent were
	// written.
	kept map[forge.IntentID][]forgedir.Problem
	// written is the content of problemsFile; nil if it does not exist.
	written []byte
}

// record sets the problems that were found while the files of an intent were written.
func (p *problems) record(id forge.IntentID, found []forgedir.Problem) {
	if p.kept == nil {
		p.kept = map[forge.IntentID][]forgedir.Problem{}
	}
	p.kept[id] = found
}

// all returns all problems: drafts, edits, state.yaml, and then by intent.
func (p *problems) all() []forgedir.Problem {
	list := slices.Concat(p.drafts, p.edits, p.state)
	for _, id := range slices.Sorted(maps.Keys(p.kept)) {
		list = append(list, p.kept[id]...)
	}
	return list
}

// writeProblems writes the problems into their file if they changed, in one
// step for its readers, and removes the file when there are none.
func (d *filesSync) writeProblems() error {
	list := d.found.all()
	name := filepath.Join(d.repo.Root, problemsFile)
	if len(list) == 0 {
		d.found.written = nil
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil || bytes.Equal(text, d.found.written) {
		return err
	}
	fresh := name + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o644); err != nil {
		return err
	}
	d.found.written = text
	return os.Rename(fresh, name)
}

// Problems returns the problems of a person's files, as of when a process last
// read those files.
func (r *Repository) Problems() ([]forgedir.Problem, error) {
	text, err := os.ReadFile(filepath.Join(r.Root, problemsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []forgedir.Problem
	return list, json.Unmarshal(text, &list)
}

// knownProblems returns the recorded problems of drafts that still exist. Only
// runs read drafts, so commands pass these on.
func (r *Repository) knownProblems() problems {
	var p problems
	list, _ := r.Problems() // unreadable: written anew
	for _, known := range list {
		if filepath.Dir(filepath.FromSlash(known.Path)) != draftsDir {
			continue
		}
		if _, err := os.Lstat(filepath.Join(r.Root, known.Path)); err == nil {
			p.drafts = append(p.drafts, known)
		}
	}
	return p
}

// Forgotten reports whether there are intent files. Where the store has no
// intent, that means that the store was removed.
func (r *Repository) Forgotten() bool {
	list, err := filepath.Glob(filepath.Join(r.Root, layout.Dir, layout.Intents, "*.yaml"))
	return err == nil && len(list) > 0
}

// Drafts counts the drafts that wait for the next run.
func (r *Repository) Drafts() int {
	names, err := filepath.Glob(filepath.Join(r.Root, draftsDir, "*.md"))
	if err != nil {
		return 0
	}
	return len(names)
}
