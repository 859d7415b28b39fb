package jobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// scratchDir is the folder of scratch directories, which is emptied at the start.
const scratchDir = "scratch"

// scratch makes a directory for one call, and returns a function that removes it.
func (h *Host) scratch() (dir string, remove func(), err error) {
	parent := filepath.Join(h.StateDir, scratchDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, "call-"); err != nil {
		return "", nil, err
	}
	return dir, func() {
		if err := removeAll(dir); err != nil {
			h.Log.Warn("cannot remove scratch files; the next start does", "path", dir, "error", err)
		}
	}, nil
}

// removeAll removes a tree, including directories without write permission, such as
// those of Go's module cache.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // to remove it
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(path))
}
