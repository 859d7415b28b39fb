package reviewer

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/pfl-forge/pfl-forge/config"
)

// withhold takes the files that instruct agents out of a checkout that a model is to judge,
// in every directory: what they say there was written by the author of the change, and the
// files that they import with it. The diff still shows them. Back ends are told as well, but
// not all of them can be kept from reading such a file.
func withhold(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open a checkout: %w", err)
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == "." || path == ".git" || path == ".forge" {
			if e != nil && e.IsDir() && path != "." && err == nil {
				return fs.SkipDir
			}
			return err
		}
		if !config.Instructs(e.Name()) {
			return nil
		}
		if err := root.RemoveAll(path); err != nil {
			return fmt.Errorf("take %q out of a checkout: %w", path, err)
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}
