package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// nullTag is the tag that yaml.v3 gives null, ~ and nothing at all.
const nullTag = "!!null"

// maxErrors bounds the report on a file that is something else entirely.
const maxErrors = 20

// Short lets a struct be written as one text in place of a mapping. A pointer
// to the struct implements it.
type Short interface {
	// SetShort takes the text, which stands for the whole of the struct.
	SetShort(text string)
}

// Shorter lets Encode write a struct as one text. A pointer to the struct implements it.
type Shorter interface {
	// Short returns the text, and whether it says all that the struct does.
	Short() (text string, ok bool)
}

// decoder fills Go values from the nodes of one document. It goes on after an error, so
// that a person reads all of them at once.
type decoder struct {
	pos  *Positions
	errs Errors
}

// fail notes an error about a node.
func (d *decoder) fail(n *yaml.Node, field, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, d.pos.node(n, field, format, args...))
	}
}

// value decodes n into v, which must be settable. field is n's path, for errors, and depth
// the number of mappings and lists around it.
func (d *decoder) value(n *yaml.Node, v reflect.Value, field string, depth int) {
	d.pos.remember(n, field)
	if !d.allowed(n, field, depth) {
		return
	}
	if v.Kind() == reflect.Pointer {
		d.pointer(n, v, field, depth)
		return
	}
	if short, ok := reflect.TypeAssert[Short](v.Addr()); ok && n.Kind == yaml.ScalarNode && !isNull(n) {
		short.SetShort(n.Value)
		return
	}
	if isScalar(v) {
		d.scalar(n, v, field)
		return
	}
	if isNull(n) { // "verify:" with nothing after it
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, field, depth)
	case reflect.Map:
		d.dictionary(n, v, field, depth)
	case reflect.Slice:
		d.list(n, v, field, depth)
	default:
		panic(fmt.Sprintf("strictyaml: %s: cannot decode into %s", field, v.Type()))
	}
}

// allowed reports whether a node uses only the part of YAML that this package reads, and
// reports an error if not. Aliases are refused before anything follows them, so that nothing
// is ever expanded.
func (d *decoder) allowed(n *yaml.Node, field string, depth int) bool {
	switch {
	case depth > maxDepth:
		d.fail(n, field, "is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.AliasNode:
		d.fail(n, field, "is an alias (*%s); write the value out", n.Value)
	case n.Anchor != "":
		d.fail(n, field, "has an anchor (&%s); anchors are not allowed", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, field, "has a tag (%s); tags are not allowed", n.Tag)
	default:
		return true
	}
	return false
}

// isNull reports whether the node is null, ~ or nothing at all.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == nullTag }

// isScalar reports whether a Go value is decoded from a single value of YAML: all but structs,
// maps and slices, and of these the ones that read themselves from text, and time.Time.
func isScalar(v reflect.Value) bool {
	if _, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		return true
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		return v.Type() == reflect.TypeFor[time.Time]()
	}
	return true
}

// pointer decodes into a new value; null makes the pointer nil.
func (d *decoder) pointer(n *yaml.Node, v reflect.Value, field string, depth int) {
	if isNull(n) {
		v.SetZero()
		return
	}
	to := reflect.New(v.Type().Elem())
	d.value(n, to.Elem(), field, depth)
	v.Set(to)
}

// structure decodes a mapping into a struct. Fields without a key stay as they are.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string, depth int) {
	fields := fieldsOf(v.Type())
	d.entries(n, path, func(key *yaml.Node, path string, val *yaml.Node) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			d.fail(key, path, "unknown key%s", suggest(key.Value, keysOf(fields)))
			return
		}
		d.value(val, v.FieldByIndex(fields[i].index), path, depth+1)
	})
}

// dictionary decodes a mapping into a map, in place of the one that was there.
func (d *decoder) dictionary(n *yaml.Node, v reflect.Value, field string, depth int) {
	if v.Type().Key().Kind() != reflect.String {
		panic(fmt.Sprintf("strictyaml: %s: map keys must be strings", field))
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	d.entries(n, field, func(key *yaml.Node, path string, val *yaml.Node) {
		el := reflect.New(v.Type().Elem()).Elem()
		d.value(val, el, path, depth+1)
		out.SetMapIndex(reflect.ValueOf(key.Value).Convert(v.Type().Key()), el)
	})
	v.Set(out)
}

// entries calls visit once for each key of a mapping, with the key, the path of the value
// and the value. It reports keys that are no text or given twice, and leaves them out.
func (d *decoder) entries(n *yaml.Node, field string, visit func(key *yaml.Node, path string, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "must be a mapping of keys to values, not %s", describe(n))
		return
	}
	// seen has the line of each key so far.
	seen := make(map[string]int, len(n.Content)/2)
	for pair := range slices.Chunk(n.Content, 2) { // yaml.v3 lists keys and values in turn
		key, val := pair[0], pair[1]
		path := join(field, key.Value)
		switch {
		case key.Kind != yaml.ScalarNode || isNull(key):
			d.fail(key, field, "has a key that is %s; keys must be text", describe(key))
			continue
		case key.Tag == "!!merge":
			d.fail(key, field, "has a merge key (<<); write the keys out")
			continue
		case !d.allowed(key, path, 0):
			continue
		}
		if first, dup := seen[key.Value]; dup {
			d.fail(key, path, "duplicate key, first given on line %d", first)
			continue
		}
		seen[key.Value] = key.Line + d.pos.offset
		visit(key, path, val)
	}
}

// list decodes into a slice, in place of the one that was there.
func (d *decoder) list(n *yaml.Node, v reflect.Value, field string, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "must be a list, not %s", describe(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, el := range n.Content {
		d.value(el, out.Index(i), fmt.Sprintf("%s[%d]", field, i), depth+1)
	}
	v.Set(out)
}

// join returns the path of a key in the mapping at a path.
func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// describe names a node in errors: its kind, or the first 40 characters of its value.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case isNull(n):
		return "null"
	}
	if text := []rune(n.Value); len(text) > 40 {
		return fmt.Sprintf("%q...", string(text[:40]))
	}
	return fmt.Sprintf("%q", n.Value)
}
