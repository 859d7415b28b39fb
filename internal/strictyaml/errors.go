package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Error is one thing wrong with a file. Line and Column count from 1; both are
// 0 if it is about the whole file. Field is the path of the value, such as
// recipes.docs.tasks[1].name, empty for the document itself.
type Error struct {
	File   string
	Line   int
	Column int
	Field  string
	Reason string
}

// Error returns "file:line: field: reason", without the parts that are not known.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.File != "" && e.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", e.File, e.Line)
	case e.File != "":
		b.WriteString(e.File + ": ")
	case e.Line > 0:
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Reason)
	return b.String()
}

// Errors is everything that is wrong with a file, in the order of its lines.
type Errors []*Error

// Error returns one line per error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find an *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Sort puts the errors in the order of the file.
func (es Errors) Sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

type position struct{ line, column int }

// Positions knows where in the file each value stood.
type Positions struct {
	opts   Options
	offset int
	at     map[string]position
}

// Errorf returns an error about the value with this path, at its line, or at
// the line of the closest enclosing value that the file has.
func (p *Positions) Errorf(field, format string, args ...any) *Error {
	e := p.whole(format, args...)
	e.Field = field
	for path := field; ; path = parent(path) {
		if at, ok := p.at[path]; ok {
			e.Line, e.Column = at.line, at.column
			return e
		}
		if path == "" {
			return e
		}
	}
}

// Has reports whether the file has a value with this path.
func (p *Positions) Has(field string) bool {
	_, ok := p.at[field]
	return ok
}

func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

func (p *Positions) whole(format string, args ...any) *Error {
	return &Error{File: p.opts.File, Reason: fmt.Sprintf(format, args...)}
}

func (p *Positions) node(n *yaml.Node, field, format string, args ...any) *Error {
	e := p.whole(format, args...)
	e.Field, e.Line, e.Column = field, n.Line+p.offset, n.Column
	return e
}

func (p *Positions) note(n *yaml.Node, field string) {
	p.at[field] = position{n.Line + p.offset, n.Column}
}
