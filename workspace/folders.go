package workspace

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

func makeFolder(root string) error {
	dir := filepath.Join(root, Dir)
	if err := os.Mkdir(dir, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return realFolder(info, Dir)
}

func (w *Workspace) folder(dir string) error {
	if err := w.root.Mkdir(dir, 0o755); err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := w.root.Lstat(dir)
	if err != nil {
		return err
	}
	return realFolder(info, shown(dir))
}

func realFolder(info fs.FileInfo, name string) error {
	if info.IsDir() {
		return nil
	}
	return fmt.Errorf("%s is %s, not a directory; remove it and try again", name, kind(info.Mode()))
}
