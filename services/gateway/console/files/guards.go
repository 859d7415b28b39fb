package files

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// Guards tells which protected paths are to be expected of a change, before the
// rules compare it with them. It is a forecast: the change may touch other
// files, and what a worker finds inside of files counts as well.
type Guards struct {
	// By says what it was made of: the plan names, or the change touches, files.
	By string
	// Files are those that are protected.
	Files []string
}

// mostGuards is how many files are named.
const mostGuards = 5

// Expect returns the protected paths that a change touches, or that its plan names
// where nothing is changed yet: of all tasks where the whole plan waits. The patterns
// are those of policy.protected_paths. It is nil where neither names a file.
func Expect(patterns []string, w *document.Work, t *document.Task, whole bool) *Guards {
	g := &Guards{By: "it touches"}
	names := t.Changed
	if len(names) == 0 {
		g.By, names = "the plan names", t.Files
		for i := range w.PlanTasks {
			if whole {
				names = slices.Concat(names, w.PlanTasks[i].Files)
			}
		}
	}
	if len(names) == 0 || len(patterns) == 0 {
		return nil
	}
	paths := make([]string, len(patterns))
	for i, p := range patterns { // after a # stands one key of a file
		paths[i], _, _ = strings.Cut(p, "#")
	}
	for _, name := range names {
		if pathpattern.Any(paths, name) && !slices.Contains(g.Files, name) {
			g.Files = append(g.Files, name)
		}
	}
	return g
}

// Words says what is to be expected. Names in it are texts of others.
func (g *Guards) Words() string {
	switch n := len(g.Files); {
	case n == 0:
		return g.By + " none"
	case n > mostGuards:
		return fmt.Sprintf("%s %s and %d more", g.By, strings.Join(g.Files[:mostGuards], ", "), n-mostGuards)
	}
	return g.By + " " + strings.Join(g.Files, ", ")
}
