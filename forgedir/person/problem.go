package person

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Problem says why a person's file was refused, or needs a look. The file is as the
// person left it.
type Problem struct {
	Path   string `json:"path"            yaml:"path"`            // from the repository's root, with slashes
	Line   int    `json:"line,omitempty"  yaml:"line,omitempty"`  // counted from 1; 0: the file as a whole
	Field  string `json:"field,omitempty" yaml:"field,omitempty"` // such as clarifications[0].answer; empty: the file as a whole
	Reason string `json:"reason"          yaml:"reason"`
	Hint   string `json:"hint,omitempty"  yaml:"hint,omitempty"` // what to do
}

// Error returns "path:line: field: reason (hint)", without the unknown ones of them.
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

// ByLine compares two problems of one file by their places in it.
func ByLine(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field))
}

// Invalid returns the problems of a file that strictyaml refused, each with the hint.
func Invalid(path, hint string, err error) []Problem {
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

// Unreadable returns the problem of a file that package disk did not read. Its hint is
// empty if a person can do nothing about the error.
func Unreadable(path string, err error) Problem {
	p := Problem{Path: path, Reason: err.Error()}
	if _, ok := errors.AsType[*disk.KindError](err); ok {
		p.Hint = "put a regular file in its place, or remove it"
	} else if _, ok := errors.AsType[*disk.SizeError](err); ok {
		p.Hint = "shorten it"
	} else if errors.Is(err, fs.ErrPermission) {
		p.Reason, p.Hint = "cannot be read: permission denied", "chmod u+r "+path
	}
	return p
}

// NoID returns why a text is no id, from the error of forge.ParseIntentID.
func NoID(err error) string {
	if bad, ok := errors.AsType[*forge.IDError](err); ok {
		return fmt.Sprintf("%q %s", bad.Short(20), bad.Reason)
	}
	return err.Error()
}
