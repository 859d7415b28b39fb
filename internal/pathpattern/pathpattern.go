// Package pathpattern matches the files of a repository with the patterns of
// policy.protected_paths. The rules and the workers read those patterns alike.
//
//	.github/     everything in .github, in any directory, and a link or file of that name
//	docs/rules/  everything in docs/rules at the root
//	*.lock       files of such names in every directory
//	ci/*.yml     files of such names in ci at the root
//
// A pattern that path.Match refuses matches nothing; the configuration refuses it before.
package pathpattern

import (
	"path"
	"strings"
)

// Match reports whether a pattern is about a file: a directory if it ends with a
// slash, or the link or file that would take its place; otherwise a name, with
// wildcards as in path.Match, of the whole path, or of its last element if the
// pattern has no slash. Letter case is ignored, because some file systems do.
func Match(pattern, file string) bool {
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

// Any reports whether at least one of several patterns is about a file. Without patterns
// nothing is.
func Any(patterns []string, file string) bool {
	for _, p := range patterns {
		if Match(p, file) {
			return true
		}
	}
	return false
}
