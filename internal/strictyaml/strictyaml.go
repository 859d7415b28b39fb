// Package strictyaml reads and writes the part of YAML that means one thing to everybody.
// It is the only package that imports a YAML library: what persons and agents write is
// read by [Decode], and what they read is written by [Encode].
//
// # Reading
//
// Decode fills a struct, as yaml.v3 does, with the yaml tags of its fields. It differs in
// what it refuses, each with line and column, and all of it at once:
//
//   - keys that the struct does not have (with the one that was probably meant), and keys
//     that are given twice;
//   - anchors, aliases, merge keys and tags, so that a small file stays small;
//   - a second document, input that is not UTF-8, too long or too deep;
//   - null where a value is needed;
//   - numbers that versions of YAML read differently, such as 010 or 1_000, and other
//     words than true and false for a bool.
//
// A field of type string receives what the file says: no, 1e3, 0123 and 2026-01-02 stay
// as they are. A struct that is a [Short] may be one text. The [Positions] that Decode
// returns let a caller report what it finds wrong with a value later at the same line.
//
// # Writing
//
// Encode chooses the style of each string so that it is read back unchanged, and prefers
// blocks that a person can edit.
//
// # Why this is not a library's
//
// The parser and the emitter are yaml.v3's. Its own decoder loses the position of a value
// once it is in a struct, and takes 010 for 8; its own encoder writes "\n" so that it is
// read back as "", and 1000000.0 as 1e+06. goccy/go-yaml has positions, but takes an
// unquoted 0123 for the string 83, a quoted '1' for an int and any anchor, stops at the
// first error, and its encoder loses more strings than that of yaml.v3.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
	"gopkg.in/yaml.v3"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

const (
	// DefaultMaxBytes bounds input whose Options do not.
	DefaultMaxBytes = 64 << 10
	// maxDepth bounds how deep mappings and lists may be nested, in levels.
	maxDepth = 50
)

// Options describes one input.
type Options struct {
	// File is the name that errors give the input. They name none if it is empty.
	File string
	// FirstLine is the number of the input's first line in its file, where the input is
	// only a part of it, such as the front matter of a text. 0 means 1.
	FirstLine int
	// MaxBytes bounds the length of the input. 0 means DefaultMaxBytes.
	MaxBytes int
}

// Decode reads one YAML document into out, which must be a struct, a map with string keys,
// a slice or a scalar. It keeps out's values for the keys that the document does not name,
// so that defaults may be set before; an empty document changes nothing. The key of a field
// is its yaml tag, or its name in lower case; the tag's options inline and omitempty are
// those of yaml.v3. Every error is an [Errors], and out is then of no use.
//
// The positions are never nil. They serve to report what is wrong with a value after it was
// decoded. Decode panics for types that it cannot decode into, such as channels.
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

// parse returns the root of the only document in data; nil if it holds nothing.
func parse(data []byte, pos *Positions) (*yaml.Node, *Error) {
	limit := pos.opts.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if len(data) > limit {
		return nil, pos.whole("is %d bytes long; at most %d are allowed", len(data), limit)
	}
	if _, valid, err := transform.Bytes(encoding.UTF8Validator, data); err != nil {
		e := pos.whole("is not UTF-8")
		e.Line = pos.offset + 1 + bytes.Count(data[:valid], []byte("\n"))
		return nil, e
	}
	// Decoding into a Node parses without following aliases, so that its cost is linear.
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

// yamlLine matches where yaml.v3 says that its parser stopped.
var yamlLine = pattern.New(`^line (\d+): `)

// syntaxError returns an error of yaml.v3's parser as one of this package.
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
