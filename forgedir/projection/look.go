package projection

import (
	"log/slog"
	"path"
	"slices"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
)

// Look reads the index and changes nothing on the disk, now or later. The result is only
// asked for versions and needs no Close.
func Look(d *disk.Disk) (*Files, error) {
	x, _, err := readIndex(d)
	if err != nil {
		return nil, err
	}
	return newFiles(d, x, slog.New(slog.DiscardHandler)), nil
}

// LookAgain is Look for who looks often: it reads what has changed since the last LookAgain, of the index as well as of the files of intents.
// Remember ends it. It changes nothing on the disk but its own cache.
func LookAgain(d *disk.Disk) (*Files, error) {
	m := recall(d)
	x, err := m.readIndex()
	if err != nil {
		m.drop()
		return nil, err
	}
	f := newFiles(d, x, slog.New(slog.DiscardHandler))
	f.memory = m
	return f, nil
}

// Remember ends a LookAgain, and keeps for the next one what it has read. That this cannot be written is no matter.
func (f *Files) Remember() {
	if f.memory != nil {
		f.memory.keep(f.index)
	}
}

// Removed returns the files of a folder that were written here and are not there, sorted.
func (f *Files) Removed(dir string) []string {
	var gone []string
	there := map[string]bool{}
	entries, _ := f.disk.List(dir) // without it, each file is looked for by itself
	for _, e := range entries {
		there[path.Join(dir, e.Name())] = true
	}
	for rel := range f.index.files {
		if inside(rel, dir) && !there[rel] && !f.disk.Exists(rel) {
			gone = append(gone, rel)
		}
	}
	slices.Sort(gone)
	return gone
}
