package strictyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Error is one thing that is wrong with a file.
type Error struct {
	// File is that of the Options, and may be empty.
	File string
	// Line and Column say where the value or key stands. They count from 1 and are 0 if the
	// error is about the whole file. A column counts characters.
	Line, Column int
	// Field is the path of the value, such as recipes.docs.tasks[1].name. It is empty for
	// the document itself.
	Field string
	// Reason says what is wrong, as a phrase that follows the field: "must be a list".
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

// Errors lists the mistakes in a file, in the order of its lines; of a file
// that is something else entirely only the first 20. It is never empty where it
// is returned.
type Errors []*Error

// Error returns one line per error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors, so that errors.As finds an *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// Sort puts the errors in the order of the file. Callers that add their own to what Decode
// found call it before they return them.
func (es Errors) Sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// position is a place in the file, counted from 1.
type position struct{ line, column int }

// Positions maps the path of each value that was decoded to its place in the file.
type Positions struct {
	opts Options
	// offset is added to a line of the input to get its line in the file.
	offset int
	// at has the position of the value by its path.
	at map[string]position
}

// Errorf returns an error about the value with this path, at its line, or at
// the line of the closest enclosing value that the file has. So a caller can report a
// missing key at the mapping that should have it.
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

// Has reports whether the file gives a value with this path. It tells a value that was
// given from a default.
func (p *Positions) Has(field string) bool {
	_, ok := p.at[field]
	return ok
}

// parent returns the path of the enclosing value: a.b for a.b[1] and for a.b.c.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// whole returns an error about the file as a whole.
func (p *Positions) whole(format string, args ...any) *Error {
	return &Error{File: p.opts.File, Reason: fmt.Sprintf(format, args...)}
}

// node returns an error about a value or key, at its place.
func (p *Positions) node(n *yaml.Node, field, format string, args ...any) *Error {
	e := p.whole(format, args...)
	e.Field, e.Line, e.Column = field, n.Line+p.offset, n.Column
	return e
}

// remember stores where the value of a field stands.
func (p *Positions) remember(n *yaml.Node, field string) {
	p.at[field] = position{n.Line + p.offset, n.Column}
}
