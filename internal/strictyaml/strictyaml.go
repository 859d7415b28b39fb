// Package strictyaml reads the part of YAML that means one thing to everybody.
//
// Refused, each with line and column: unknown and duplicate keys, anchors,
// aliases, merge keys, tags, a second document, input that is not UTF-8, too
// long or too deep, numbers such as 010 that YAML versions read differently,
// and null where a value is needed. What a field of type string receives is
// what the file says: no, 1e3, 0123 and 2026-01-02 stay as they are.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits that hold unless Options says otherwise.
const (
	DefaultMaxBytes = 64 << 10
	maxDepth        = 50
)

// Options says what input is called and how large it may be.
type Options struct {
	File      string // named in errors; may be empty
	FirstLine int    // number of the first line, for a part of a file; 0 means 1
	MaxBytes  int    // 0 means DefaultMaxBytes
}

// Decode reads one YAML document into out and keeps out's values for the keys
// that it does not name. Field names are those of the yaml struct tag; a field
// without one is the lower-case name. Every error is an Errors. The positions
// serve to report what is wrong with a value after it was decoded.
func Decode[T any](data []byte, out *T, opts Options) (*Positions, error) {
	pos := &Positions{opts: opts, at: map[string]position{}}
	if opts.FirstLine > 0 {
		pos.offset = opts.FirstLine - 1
	}
	root, err := parse(data, pos)
	if err != nil {
		return pos, Errors{err}
	}
	if root == nil {
		return pos, nil
	}
	d := decoder{pos: pos}
	d.value(root, reflect.ValueOf(out).Elem(), "", 0)
	if len(d.errs) > 0 {
		return pos, d.errs
	}
	return pos, nil
}

func parse(data []byte, pos *Positions) (*yaml.Node, *Error) {
	limit := pos.opts.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if len(data) > limit {
		return nil, pos.whole("is %d bytes long; at most %d are allowed", len(data), limit)
	}
	if i := invalidUTF8(data); i >= 0 {
		e := pos.whole("is not UTF-8")
		e.Line = pos.offset + 1 + bytes.Count(data[:i], []byte("\n"))
		return nil, e
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxError(err, pos)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxError(err, pos)
	default:
		return nil, pos.node(&second, "", "holds a second document; only one is allowed")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == nullTag && root.Value == "" && root.Style == 0 && root.Anchor == "" {
		return nil, nil // nothing but comments
	}
	return root, nil
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

func syntaxError(err error, pos *Positions) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	e := pos.whole("")
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		n, _ := strconv.Atoi(m[1])
		e.Line = pos.offset + n
		msg = strings.TrimPrefix(msg, m[0])
	}
	e.Reason = "is not valid YAML: " + msg
	return e
}
