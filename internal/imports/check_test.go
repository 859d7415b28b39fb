package imports

import (
	"fmt"
	"strings"
)

const module = "github.com/pfl-forge/pfl-forge"

// patterns may be imported by all who may import the standard library: it is package regexp, later.
const patterns = module + "/internal/pattern"

// violations returns one line for each import that breaks a rule.
func violations(files []file, allowLists []allowList, restrictions []restriction) []string {
	var found []string
	for _, f := range files {
		for _, imp := range f.imports {
			for _, reason := range broken(f, imp, allowLists, restrictions) {
				found = append(found, fmt.Sprintf("%s imports %s: %s", f.path, imp, reason))
			}
		}
	}
	return found
}

// broken gives the reasons why a file may not import a package.
func broken(f file, imp string, allowLists []allowList, restrictions []restriction) []string {
	var reasons []string
	for _, d := range allowLists {
		if f.test && !d.tests || !matchAny(d.packages, f.pkg) {
			continue
		}
		if !matchAny(d.may, imp) && imp != patterns || matchAny(d.never, imp) {
			reasons = append(reasons, d.reason)
		}
	}
	for _, r := range restrictions {
		if f.test && !r.tests || !matchAny(r.imports, imp) {
			continue
		}
		if !matchAny(r.packages, f.pkg) {
			reasons = append(reasons, r.reason)
		}
	}
	return reasons
}

func matchAny(patterns []string, path string) bool {
	for _, pattern := range patterns {
		if match(pattern, path) {
			return true
		}
	}
	return false
}

// match compares a pattern of the tables with an import path.
func match(pattern, path string) bool {
	if pattern == "std" {
		first, _, _ := strings.Cut(path, "/")
		return !strings.Contains(first, ".")
	}
	if ours, ok := strings.CutPrefix(pattern, "."); ok {
		pattern = module + ours
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	return path == pattern
}
