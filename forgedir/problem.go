package forgedir

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Problem is something in a person's file that was refused, or that needs a
// look. The file is as the person left it.
type Problem struct {
	Path   string `json:"path"            yaml:"path"`            // from the repository's root, with slashes
	Line   int    `json:"line,omitempty"  yaml:"line,omitempty"`  // counted from 1; 0: the file as a whole
	Field  string `json:"field,omitempty" yaml:"field,omitempty"` // such as clarifications[0].answer; empty: the file as a whole
	Reason string `json:"reason"          yaml:"reason"`
	Hint   string `json:"hint,omitempty"  yaml:"hint,omitempty"` // what to do
}

// Error returns "path:line: field: reason (hint)", without what is not known.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Path)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Reason)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// problemsOf turns what strictyaml says of a file into problems.
func problemsOf(path, hint string, err error) []Problem {
	var list strictyaml.Errors
	if !errors.As(err, &list) {
		return []Problem{{Path: path, Reason: err.Error(), Hint: hint}}
	}
	problems := make([]Problem, len(list))
	for i, e := range list {
		problems[i] = Problem{Path: path, Line: e.Line, Field: e.Field, Reason: e.Reason, Hint: hint}
	}
	return problems
}
