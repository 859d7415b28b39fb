// Package files makes the page of the files of a change, as whoever reviews it reads
// them: in which order, what is folded, and where the rest of it, comparisons and
// the change without white space are. It is pure: it knows neither HTML nor HTTP.
//
// Names of files are those of whoever made the change. So a name can have a file folded, which each
// reader can open, and one that the plan does not name is never folded, whatever it is called.
package files

import (
	"cmp"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
)

// Order compares files: those that the plan does not name come first, then the
// others, then those that a program makes.
func Order(a, b document.DiffFile) int {
	rank := func(f document.DiffFile) int {
		switch {
		case Unplanned(f):
			return 0
		case Generated(f.Path):
			return 2
		}
		return 1
	}
	return cmp.Compare(rank(a), rank(b))
}

// Unplanned reports whether there is a plan, and it does not name the file.
func Unplanned(f document.DiffFile) bool { return f.Planned != nil && !*f.Planned }

// Generated reports whether a file is one that programs make, by its name. Such
// a file is folded, and shown as all others when it is opened.
func Generated(name string) bool {
	base := path.Base(name)
	for _, end := range []string{".pb.go", "_pb2.py", ".min.js", ".min.css", ".map", ".snap", ".lock", "-lock.json", "-lock.yaml", ".sum"} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return strings.Contains(base, ".gen.") || strings.Contains(base, "generated") || strings.Contains("/"+name, "/vendor/") ||
		strings.Contains("/"+name, "/node_modules/")
}

// manyLines is how many changed lines a file may have that is shown opened.
const manyLines = 400

// Folded reports whether a file is shown closed: one that a program makes, or a
// large one. One that the plan does not name is never closed.
func Folded(f document.DiffFile) bool {
	return !Unplanned(f) && (Generated(f.Path) || f.Added+f.Deleted > manyLines)
}
