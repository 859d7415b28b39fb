package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// FolderError reports that something else is in the place of a folder.
type FolderError struct {
	Name string // from the repository's root
	What string // such as "a symbolic link"
}

// Error names the folder, and says what to do.
func (e *FolderError) Error() string {
	return fmt.Sprintf("%s is %s, not a directory; remove it and try again", e.Name, e.What)
}

// Renew makes those folders inside .forge again that a person removed.
func (d *Disk) Renew() error {
	for _, dir := range layout.Folders() {
		if !d.Exists(dir) {
			return d.makeFolders()
		}
	}
	return nil
}

// makeFolders makes all folders inside .forge, and checks that they are folders.
func (d *Disk) makeFolders() error {
	for _, dir := range layout.Folders() {
		if err := d.MakeFolder(dir); err != nil {
			return err
		}
	}
	return nil
}

// MakeRoot makes one of the two folders, layout.Dir or layout.GoalDir, in the
// repository's root. That there is one already is no error.
func (d *Disk) MakeRoot(name string) error {
	dir := filepath.Join(d.repository, name)
	if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return realFolder(info, name)
}

// MakeFolder makes a folder in one that exists. That there is one already is no
// error; that there is something else is a *FolderError.
func (d *Disk) MakeFolder(rel string) error {
	root, name, err := d.place(rel)
	if err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	return realFolder(info, layout.Shown(rel))
}

// MakeFolders makes a folder inside .forge with all its parents.
func (d *Disk) MakeFolders(rel string) error { return d.forge.MkdirAll(rel, 0o755) }

// realFolder returns a *FolderError for everything that is no folder.
func realFolder(info fs.FileInfo, name string) error {
	if info.IsDir() {
		return nil
	}
	return &FolderError{name, kind(info.Mode())}
}
