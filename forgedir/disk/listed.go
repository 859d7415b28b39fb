package disk

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Listed is a folder inside .forge whose names were read once, and whose files
// are described with one call of the system each, where Stat takes three. It
// stays the folder that was opened, whatever a person puts in its place.
type Listed struct {
	// Names are those in the folder when it was opened, sorted.
	Names []string

	root *os.Root
}

// OpenListed opens a folder inside .forge and reads its names. Close ends its use.
func (d *Disk) OpenListed(dir string) (*Listed, error) {
	root, err := d.forge.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	names, err := namesIn(root, ".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Listed{names, root}, nil
}

// Stat describes what is at a name now. It does not follow a symbolic link.
func (l *Listed) Stat(name string) (fs.FileInfo, error) { return l.root.Lstat(name) }

// Close ends the use of the folder.
func (l *Listed) Close() error { return l.root.Close() }

// namesIn returns the names in a folder, sorted. Unlike ReadDir, which below a
// root describes each file, it asks for nothing but names.
func namesIn(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}
