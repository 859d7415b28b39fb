package analyzer

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// inRepository returns paths relative to the repository's root, each once. Agents
// also name files with the directory of their checkout. Paths outside of the
// repository are left out.
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
