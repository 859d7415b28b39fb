package jobs

import (
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/jobs/caches"
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
		if err := caches.RemoveAll(dir); err != nil {
			h.Log.Warn("cannot remove scratch files; the next start does", "path", dir, "error", err)
		}
	}, nil
}
