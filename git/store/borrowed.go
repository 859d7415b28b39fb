package store

import (
	"os"
	"path/filepath"
	"strings"
)

// maxBorrowed bounds how far alternates lead from one object store to the next.
const maxBorrowed = 5

// ObjectDirs returns the directories whose objects checkouts borrow: the repository's own,
// and those that it borrows from itself. A checkout needs nothing else outside of it.
func (s *Store) ObjectDirs() []string {
	dirs := []string{s.ObjectDir()}
	for i := 0; i < len(dirs) && i < maxBorrowed; i++ {
		raw, err := os.ReadFile(filepath.Join(dirs[i], "info", "alternates"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			line = strings.TrimRight(line, "\n")
			if line == "" || line[0] == '#' {
				continue
			}
			if !filepath.IsAbs(line) {
				line = filepath.Join(dirs[i], line)
			}
			dirs = append(dirs, filepath.Clean(line))
		}
	}
	return dirs
}
