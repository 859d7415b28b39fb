package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Conduct holds times and functions that tests replace. The folders of a running
// program have those that Open sets.
type Conduct struct {
	// Settle is the age from which a file counts as saved completely. A file that
	// changed more recently may still be in the middle of being saved.
	Settle time.Duration
	// Linger is how long a file that was swapped out is left alone, because an editor
	// may still have it open.
	Linger time.Duration
	// NoSwap makes swaps fail, as on a file system that does not know them.
	NoSwap bool
	// Reached is called after every step that a crash can follow, with its name. Tests
	// end the process there, or save a file.
	Reached func(point string)
	// Flush returns when a file or folder is on the disk.
	Flush func(*os.File) error
}

// Disk is the pair of folders .forge and .e8 of one repository. It is not safe for
// concurrent use.
type Disk struct {
	Conduct

	repository string   // path of its root
	forge      *os.Root // layout.Dir
	goals      *os.Root // layout.GoalDir; nil until there is one
}

// Open makes .forge and the folders in it where they are missing. It refuses a
// folder that a symbolic link stands in for.
func Open(repository string) (*Disk, error) {
	d := newDisk(repository)
	if err := d.MakeRoot(layout.Dir); err != nil {
		return nil, err
	}
	var err error
	if d.forge, err = os.OpenRoot(filepath.Join(repository, layout.Dir)); err != nil {
		return nil, err
	}
	if err := d.makeFolders(); err != nil {
		return nil, errors.Join(err, d.forge.Close())
	}
	return d, nil
}

// Look opens .forge and makes nothing. Where it is missing the error is fs.ErrNotExist.
func Look(repository string) (*Disk, error) {
	d := newDisk(repository)
	dir := filepath.Join(repository, layout.Dir)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := realFolder(info, layout.Dir); err != nil {
		return nil, err
	}
	if d.forge, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	return d, nil
}

// newDisk returns a disk that behaves as people's editors need it; tests make it quicker.
func newDisk(repository string) *Disk {
	return &Disk{
		Conduct: Conduct{
			Settle:  150 * time.Millisecond,
			Linger:  5 * time.Second,
			Reached: func(string) {},
			Flush:   (*os.File).Sync,
		},
		repository: repository,
	}
}

// Close ends the use of the folders.
func (d *Disk) Close() error { return errors.Join(d.closeGoals(), d.forge.Close()) }

// Exists reports whether there is something at a path, whatever it is.
func (d *Disk) Exists(rel string) bool {
	_, err := d.Stat(rel)
	return err == nil
}

// Stat describes what is at a path. It does not follow a symbolic link.
func (d *Disk) Stat(rel string) (fs.FileInfo, error) {
	root, name, err := d.place(rel)
	if err != nil {
		return nil, err
	}
	return root.Lstat(name)
}

// List returns the names in a folder inside .forge, sorted.
func (d *Disk) List(dir string) ([]string, error) { return namesIn(d.forge, dir) }

// Remove removes a file inside .forge.
func (d *Disk) Remove(rel string) error { return d.forge.Remove(rel) }

// place returns the folder that a path is in, and its name there. The error is
// fs.ErrNotExist if there is no folder of goals.
func (d *Disk) place(rel string) (*os.Root, string, error) {
	if rel != layout.GoalDir && !layout.IsGoalFile(rel) {
		return d.forge, rel, nil
	}
	root, err := d.openGoals()
	return root, path.Clean(strings.TrimPrefix(strings.TrimPrefix(rel, layout.GoalDir), "/")), err
}

// openGoals returns the folder of goals that is there now: a person may have removed
// the one from before.
func (d *Disk) openGoals() (*os.Root, error) {
	dir := filepath.Join(d.repository, layout.GoalDir)
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if err := realFolder(info, layout.GoalDir); err != nil {
		return nil, err
	}
	if d.goals != nil {
		if open, err := d.goals.Stat("."); err == nil && os.SameFile(open, info) {
			return d.goals, nil
		}
	}
	if err := d.closeGoals(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if open, err := root.Stat("."); err != nil || !os.SameFile(open, info) {
		return nil, errors.Join(&FolderError{layout.GoalDir, "being replaced"}, err, root.Close())
	}
	d.goals = root
	return root, nil
}

func (d *Disk) closeGoals() error {
	if d.goals == nil {
		return nil
	}
	err := d.goals.Close()
	d.goals = nil
	return err
}
