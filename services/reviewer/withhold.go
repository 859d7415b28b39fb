package reviewer

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/config"
)

// withhold takes the files that instruct agents out of a checkout that a model is to judge, in
// every directory, .forge as well: what they say there was written by the author of the change,
// and the files that they import with it. The diff still shows them. Back ends are told as well,
// but not all of them can be kept from reading such a file.
func withhold(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open a checkout: %w", err)
	}
	defer func() { _ = root.Close() }()
	// Not root.FS, which refuses names that are no UTF-8. Links are not followed.
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case name == ".git" && e.IsDir():
			return fs.SkipDir
		case name == ".git" || !config.Instructs(e.Name()):
			return nil
		}
		if err := root.RemoveAll(name); err != nil {
			return fmt.Errorf("take %q out of a checkout: %w", name, err)
		}
		if e.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
}
