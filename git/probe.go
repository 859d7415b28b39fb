package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ProbeOverlay says whether checkouts can be overlay mounts in a directory, by mounting one for a moment in a new
// directory below, where nobody else sees it. It returns nil, or why they cannot.
func ProbeOverlay(dir string) (err error) {
	top, err := os.MkdirTemp(dir, probePrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(top)) }()
	lower := filepath.Join(top, "lower")
	for _, d := range []string{filepath.Join(lower, "dir", "deep"), filepath.Join(top, "upper"), filepath.Join(top, "at")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"file", "dir/file", "dir/deep/file"} {
		if err := os.WriteFile(filepath.Join(lower, name), []byte("x"), 0o600); err != nil {
			return err
		}
	}
	return inPrivate(func() error {
		at := filepath.Join(top, "at")
		if err := mountOverlay(lower, filepath.Join(top, "upper"), filepath.Join(top, "work"), at); err != nil {
			if p, ok := errors.AsType[*os.PathError](err); ok { // whose path says nothing
				err = p.Err
			}
			return fmt.Errorf("mounting an overlay is not permitted here: %w", err)
		}
		return errors.Join(tryOverlay(lower, at), unmount(at))
	})
}

const probePrefix = ".probe-"

// tryOverlay does what every agent may do, and what some systems that let us mount cannot.
func tryOverlay(lower, at string) error {
	if !sameFile(filepath.Join(lower, "dir", "file"), filepath.Join(at, "dir", "file")) {
		return errors.New("the file system shows other file numbers in a mount, so git would read every file again")
	}
	if err := os.Rename(filepath.Join(at, "dir"), filepath.Join(at, "moved")); err != nil {
		return fmt.Errorf("directories cannot be renamed in a mount: %w", err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(at, "moved", "deep")), os.Mkdir(filepath.Join(at, "moved", "deep"), 0o700)); err != nil {
		return fmt.Errorf("directories cannot be replaced in a mount: %w", err)
	}
	if !exists(filepath.Join(at, "moved", "file")) || exists(filepath.Join(at, "moved", "deep", "file")) || !exists(filepath.Join(lower, "dir", "deep", "file")) {
		return errors.New("a mount does not show what was done in it")
	}
	return nil
}
