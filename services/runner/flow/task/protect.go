package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// protectedFiles returns the files of a change that a pattern is about.
func protectedFiles(patterns, files []string) []string {
	var list []string
	for _, f := range files {
		if slices.ContainsFunc(patterns, func(pattern string) bool { return protects(pattern, f) }) {
			list = append(list, f)
		}
	}
	return list
}

// protects reports whether a pattern is about a file: a directory if it ends with a
// slash, or the link or file that would take its place; otherwise a name, with wildcards as in path.Match, of the whole path, or
// of its last element if the pattern has no slash. Letter case is ignored, because
// some file systems do.
func protects(pattern, file string) bool {
	pattern, file = strings.ToLower(pattern), strings.ToLower(file)
	if dir, ok := strings.CutSuffix(pattern, "/"); ok {
		return strings.HasPrefix(file+"/", dir+"/") || !strings.Contains(dir, "/") && strings.Contains("/"+file+"/", "/"+dir+"/")
	}
	if !strings.Contains(pattern, "/") {
		file = path.Base(file)
	}
	ok, err := path.Match(pattern, file)
	return ok && err == nil
}

// HashChanges names the candidates of tasks, so that an approval is of exactly
// those.
func HashChanges(tasks []*Task) string {
	h := sha256.New()
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q\n", t.ID, t.Candidate.PatchID)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
