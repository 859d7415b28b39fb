package analyzer

import (
	"os"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// line matches the end of a reference, such as :12, :12-20 or #L12.
var line = pattern.New(`(:[0-9]+([-:,][0-9]+)*|#L[0-9]+(-L[0-9]+)?)$`)

// existing returns the evidence that can be looked at, each once: files that exist in
// dir, and everything that is no file.
func existing(dir string, list []forge.Evidence) []forge.Evidence {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return list // nobody can tell
	}
	defer func() { _ = root.Close() }()
	var out []forge.Evidence
	for _, e := range list {
		if e.Type == forge.EvidenceFile && !isIn(root, e.Ref) && !isIn(root, line.ReplaceAllString(e.Ref, "")) {
			continue
		}
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// isIn reports whether a path exists below root.
func isIn(root *os.Root, path string) bool {
	_, err := root.Lstat(path)
	return path != "" && err == nil
}
