package projection

import (
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Notice looks for files that are gone, and for those that were changed although no
// edits of them are read, and has their intents written again. It returns their paths.
// The files of goals are not among them: these may be changed.
func (f *Files) Notice() ([]string, error) {
	there, err := f.present()
	if err != nil {
		return nil, err
	}
	var changed []string
	var lines []indexLine
	for rel := range f.index.files {
		if layout.IsGoalFile(rel) {
			continue
		}
		gone := !there[rel]
		if !gone && (inside(rel, layout.Intents) || !f.touched(rel)) {
			continue
		}
		if gone {
			if err := f.exchange.tidyPath(rel); err != nil { // while its versions are known
				return nil, err
			}
			lines = append(lines, indexLine{Path: rel})
		}
		f.Recheck(rel)
		delete(f.seen, rel)
		changed = append(changed, rel)
		if rel == layout.Observations {
			lines = append(lines, f.index.again(f.index.intents()...)...)
		} else {
			lines = append(lines, f.index.again(layout.Owner(rel))...)
		}
	}
	return changed, f.index.add(false, lines...)
}

// present returns the paths of all files that are there and that Write can have put
// there.
func (f *Files) present() (map[string]bool, error) {
	there := map[string]bool{}
	for _, rel := range []string{layout.Observations, layout.State} {
		there[rel] = f.disk.Exists(rel)
	}
	for _, dir := range []string{layout.Intents, layout.Work, layout.Reviews, layout.Reports, layout.History} {
		names, err := f.disk.List(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			there[path.Join(dir, name)] = true
		}
	}
	return there, nil
}

// touched reports whether a file holds another version than the last one of ours.
func (f *Files) touched(rel string) bool {
	if f.Unchanged(rel) {
		return false
	}
	data, info, err := f.disk.Read(rel, disk.MaxOther)
	return err != nil || !f.Ours(rel, data, info) || !f.index.latest(rel, disk.DigestOf(data))
}

// inside reports whether a file is in a folder, not in one below it.
func inside(rel, dir string) bool {
	_, in := nameIn(rel, dir)
	return in
}

// nameIn returns the name that a file has in a folder; false if it is not in
// it, or in one below it.
func nameIn(rel, dir string) (name string, in bool) {
	rest, below := strings.CutPrefix(rel, dir)
	name, slash := strings.CutPrefix(rest, "/")
	return name, below && slash && !strings.Contains(name, "/")
}
