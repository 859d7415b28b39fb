package analyzer

import (
	"os"
	"regexp"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// line is what follows the path in a reference, such as :12, :12-20 or #L12.
var line = regexp.MustCompile(`(:[0-9]+([-:,][0-9]+)*|#L[0-9]+(-L[0-9]+)?)$`)

// existing returns the evidence that somebody can look at, each once: what is no file, and
// files that are in dir.
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

func isIn(root *os.Root, path string) bool {
	_, err := root.Lstat(path)
	return path != "" && err == nil
}
