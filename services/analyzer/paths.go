package analyzer

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// inRepository returns paths as they are named from the repository's root, each once.
// An agent that worked in dir also names them with it. What is not in the repository
// is left out.
func inRepository(dir string, paths []string) []string {
	var out []string
	for _, p := range paths {
		p = strings.TrimSpace(p)
		if inside, ok := strings.CutPrefix(p, filepath.ToSlash(dir)+"/"); ok && dir != "" {
			p = inside
		}
		p = path.Clean(p)
		if p == "." || p == ".." || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "../") || slices.Contains(out, p) {
			continue
		}
		out = append(out, p)
	}
	return out
}
