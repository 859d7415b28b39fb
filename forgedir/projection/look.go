package projection

import (
	"io/fs"
	"log/slog"
	"slices"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Look reads the index and changes nothing on the disk, now or later. The result is only
// asked for versions. EndLook ends it.
func Look(d *disk.Disk) (*Files, error) {
	x, _, err := readIndex(d)
	if err != nil {
		return nil, err
	}
	f := newFiles(d, x, slog.New(slog.DiscardHandler))
	f.look = &look{}
	return f, nil
}

// LookAgain is Look for who looks often: it reads what has changed since the last LookAgain, of
// the index as well as of the files of intents. It changes nothing on the disk but its own cache.
func LookAgain(d *disk.Disk) (*Files, error) {
	m := recall(d)
	x, err := m.readIndex()
	if err != nil {
		m.drop()
		return nil, err
	}
	f := newFiles(d, x, slog.New(slog.DiscardHandler))
	f.look = &look{memory: m}
	return f, nil
}

// EndLook ends a look, and keeps for the next LookAgain what this one has read.
// That this cannot be written is no matter.
func (f *Files) EndLook() {
	if f.look.memory != nil {
		f.look.memory.keep(f.index)
	}
	if f.look.intents != nil {
		_ = f.look.intents.Close() // nothing was written
	}
}

// look keeps the state of one look at the files. A nil *look is that of one who writes them.
type look struct {
	// memory has the results of the look before; nil in a look that reads all.
	memory *memory
	// intents is the folder of intents, once it was listed.
	intents *disk.Listed
}

// Intents returns the names in the folder of intents, sorted. A look lists it once.
func (f *Files) Intents() ([]string, error) {
	if f.look == nil {
		return f.disk.List(layout.Intents)
	}
	if f.look.intents == nil {
		var err error
		if f.look.intents, err = f.disk.OpenListed(layout.Intents); err != nil {
			return nil, err
		}
	}
	return f.look.intents.Names, nil
}

// recalled returns the memory; nil for one who has none.
func (l *look) recalled() *memory {
	if l == nil {
		return nil
	}
	return l.memory
}

// stat is d.Stat, with fewer calls of the system for a file in a folder that is listed.
func (l *look) stat(d *disk.Disk, rel string) (fs.FileInfo, error) {
	if l.intents != nil {
		if name, in := nameIn(rel, layout.Intents); in {
			return l.intents.Stat(name)
		}
	}
	return d.Stat(rel)
}

// Removed returns the files of intents that were written here and are not there, sorted.
func (f *Files) Removed() []string {
	names, _ := f.Intents() // without them, each file is looked for by itself
	there := make(map[string]bool, len(names))
	for _, name := range names {
		there[name] = true
	}
	var gone []string
	for rel := range f.index.files {
		if name, in := nameIn(rel, layout.Intents); in && !there[name] && !f.disk.Exists(rel) {
			gone = append(gone, rel)
		}
	}
	slices.Sort(gone)
	return gone
}
