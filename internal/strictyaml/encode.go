package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Encode returns v as YAML that Decode reads back: the fields of structs in their order,
// maps sorted by key, strings of several lines as literal blocks, indented by two blanks.
// Tags are those that Decode reads; omitempty leaves out nil, zero and what has no
// elements. Encode fails for a string that is not UTF-8, which YAML cannot hold, and for
// types that YAML has no form for.
func Encode(v any) ([]byte, error) {
	root, err := node(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// node returns a Go value as a node.
func node(v reflect.Value) (*yaml.Node, error) {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return scalar(nullTag, "null"), nil
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return scalar("!!str", x.String()), nil
	case time.Time:
		return scalar("!!timestamp", x.Format(time.RFC3339Nano)), nil
	case encoding.TextMarshaler:
		s, err := x.MarshalText()
		if err != nil {
			return nil, err
		}
		return text(string(s))
	}
	if s, ok := short(v); ok {
		return text(s)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return node(v.Elem())
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar("!!int", strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalar("!!int", strconv.FormatUint(v.Uint(), 10)), nil
	case reflect.Float32, reflect.Float64:
		return scalar("!!float", strconv.FormatFloat(v.Float(), 'f', -1, 64)), nil
	case reflect.Slice, reflect.Array:
		return list(v)
	case reflect.Map:
		return dictionary(v)
	case reflect.Struct:
		return structure(v)
	}
	return nil, fmt.Errorf("cannot write %s as YAML", v.Type())
}

// short returns the text that says all that a struct does; false if there is none.
func short(v reflect.Value) (string, bool) {
	if v.Kind() != reflect.Struct {
		return "", false
	}
	p := reflect.New(v.Type()) // a copy that has an address
	p.Elem().Set(v)
	if s, ok := reflect.TypeAssert[Shorter](p); ok {
		return s.Short()
	}
	return "", false
}

// scalar returns a single value that is written without quotes.
func scalar(tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	// With a tag that yaml.v3 would not resolve from the value, it writes the tag in front: 3 is
	// an int to it, and a float only as "!!float 3", which Decode refuses.
	if tag == "!!float" || tag == "!!timestamp" {
		n.Tag = ""
	}
	return n
}

// list returns a slice or an array as a sequence.
func list(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range v.Len() {
		el, err := node(v.Index(i))
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, el)
	}
	return n, nil
}

// dictionary returns a map as a mapping that is sorted by key.
func dictionary(v reflect.Value) (*yaml.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("cannot write %s as YAML: keys must be strings", v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range keys {
		if err := entry(n, k.String(), v.MapIndex(k)); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// structure returns a struct as a mapping in the order of its fields.
func structure(v reflect.Value) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fieldsOf(v.Type()) {
		val := v.FieldByIndex(f.index)
		if f.omitEmpty && empty(val) {
			continue
		}
		if err := entry(n, f.key, val); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// entry appends a key and its value to a mapping.
func entry(n *yaml.Node, key string, v reflect.Value) error {
	k, err := text(key)
	if err != nil {
		return err
	}
	val, err := node(v)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	n.Content = append(n.Content, k, val)
	return nil
}

// empty reports whether omitempty leaves the value out.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

// otherwise matches words that older versions of YAML take for something else: yes and no
// for booleans, 1:20 for a number to the base of 60. They are quoted.
var otherwise = pattern.New(`^(?i:y|n|yes|no|on|off)$|^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`)

// text returns a string in a style in which yaml.v3 writes what it reads back as the same
// string. FuzzRoundTrip finds the cases.
func text(s string) (*yaml.Node, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("a string that is not UTF-8 cannot be written as YAML")
	}
	n := scalar("!!str", s)
	switch {
	case strings.ContainsAny(s, "\r\u0085\u2028\u2029\ufeff"), otherwise.MatchString(s):
		n.Style = yaml.DoubleQuotedStyle
	case !strings.Contains(s, "\n"):
		if strings.Contains(s, "\t") {
			n.Style = yaml.DoubleQuotedStyle
		}
	case strings.ContainsAny(s[:1], " \t\n"), strings.Contains(s, " \n"):
		n.Style = yaml.DoubleQuotedStyle // a block would be ambiguous about blanks
	default:
		n.Style = yaml.LiteralStyle
	}
	return n, nil
}
