package forgedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// renew makes what a person removed of the folder while it is in use.
func (w *Workspace) renew() error {
	for _, dir := range folders {
		if !w.exists(dir) {
			if err := w.makeFolders(); err != nil {
				return err
			}
			break
		}
	}
	for _, name := range schemaFiles {
		if !w.exists(name) {
			if err := w.writeSchemas(); err != nil {
				return err
			}
			break
		}
	}
	return w.index.renew()
}

func (w *Workspace) makeFolders() error {
	for _, dir := range folders {
		if err := w.folder(dir); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes a folder in a repository's root.
func makeFolder(root, name string) error {
	dir := filepath.Join(root, name)
	if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return realFolder(info, name)
}

func (w *Workspace) folder(dir string) error {
	root, name, err := w.place(dir)
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
	return realFolder(info, shown(dir))
}

// errFolder says that something is no folder.
type errFolder struct{ name, what string }

func (e *errFolder) Error() string {
	return fmt.Sprintf("%s is %s, not a directory; remove it and try again", e.name, e.what)
}

func realFolder(info fs.FileInfo, name string) error {
	if info.IsDir() {
		return nil
	}
	return &errFolder{name, kind(info.Mode())}
}
