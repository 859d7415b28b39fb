// Package plainjson writes the structs of package forge as JSON, and reads them back.
//
// These structs have no tags, because the vocabulary is of no format. A field is found
// under its name in snake_case, a field of an embedded struct as one of the struct
// around it, a duration is a number of nanoseconds. What is zero is left out; a list
// that is empty and not nil is an empty one. So what is read is exactly what was
// written. A struct that has tags, and all that is in it, is left to encoding/json.
//
// A reader passes over fields that it does not know: the writer may be of a newer version.
//
// Beside this there are three other forms of the vocabulary, each for its own readers:
// package bus/codec writes it in the binary format of proto/forge/v1, for journals and for
// what services tell each other; package document has the accounts for other systems, whose
// names are kept for ever; and package forgedir writes files that a person edits. This one is
// for a program that has the same vocabulary, of about the same version, and shows all of it.
//
// What is in the vocabulary decides what has a form here: structs, lists, maps
// with texts as keys, pointers, texts, numbers, times and durations. An
// interface has none, because what is behind it would have to be named.
package plainjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// ErrLong says that the JSON of a value would have more bytes than it may.
var ErrLong = errors.New("is too long")

// Marshal returns the JSON of a value. Error: a type that is none of a plain
// struct's, such as an interface.
func Marshal(v any) ([]byte, error) { return MarshalMost(v, math.MaxInt) }

// MarshalMost is Marshal for a value whose JSON has at most so many bytes. It ends
// where these are written, and before a value whose texts alone are more than what
// is left, so that what is too long costs no more than what is not. Error: ErrLong.
func MarshalMost(v any, most int) ([]byte, error) {
	w := writer{most: most}
	err := w.write(reflect.ValueOf(v))
	if err == nil && w.Len() > most {
		err = ErrLong
	}
	if err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// Unmarshal reads JSON of Marshal into what v points to. Error: content that is not of the type.
func Unmarshal(data []byte, v any) error {
	return read(data, reflect.ValueOf(v).Elem())
}

// Name returns the name that a field without a tag has in JSON: "CostUSD" is "cost_usd".
func Name(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, r := range letters {
		lower := func(k int) bool { return k >= 0 && k < len(letters) && unicode.IsLower(letters[k]) }
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(letters[i-1]) || lower(i+1)) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Tagged reports whether a type is left to encoding/json: one with tags, a
// time, or one that writes itself.
func Tagged(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() || t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for f := range t.Fields() {
		if _, has := f.Tag.Lookup("json"); has {
			return true
		}
	}
	return false
}

// writer writes JSON of at most so many bytes. The bound is looked at before each value that is
// written as a whole, so the buffer may be longer by the names and brackets in between;
// MarshalMost looks once more.
type writer struct {
	bytes.Buffer

	most int
}

// write appends the JSON of a value. A nil list is null and an empty one [], so that reading gives
// back the same. A nil pointer is null; it is met in lists and maps only, because a field that is
// zero is left out.
func (b *writer) write(v reflect.Value) error {
	switch {
	case !v.IsValid():
		b.WriteString("null")
		return nil
	case Tagged(v.Type()):
		return b.writeTagged(v)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			b.WriteString("null")
			return nil
		}
		return b.write(v.Elem())
	case reflect.Struct:
		b.WriteByte('{')
		if err := b.writeFields(v, b.Len()); err != nil {
			return err
		}
		b.WriteByte('}')
		return nil
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			b.WriteString("null")
			return nil
		}
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := b.write(v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case reflect.Map:
		return b.writeMap(v)
	case reflect.Interface, reflect.Func, reflect.Chan:
		return fmt.Errorf("%s has no plain JSON", v.Type())
	default:
		return b.writeTagged(v)
	}
}

// writeTagged appends the JSON by encoding/json of a value: a text, a number, a time, a struct
// with tags. Error: ErrLong, before anything is written of a value that is certainly too long.
func (b *writer) writeTagged(v reflect.Value) error {
	if left := b.most - b.Len(); left < 0 || least(v, left) > left {
		return ErrLong
	}
	data, err := json.Marshal(v.Interface())
	b.Write(data)
	return err
}

// writeFields appends the fields of a struct that are not zero. The object begins at
// start of the buffer. Fields of an embedded struct are written into the same object;
// two of one name would be written twice, which the vocabulary does not have.
func (b *writer) writeFields(v reflect.Value, start int) error {
	for f, one := range v.Fields() {
		switch {
		case !f.IsExported() || one.IsZero():
			continue
		case f.Anonymous && f.Type.Kind() == reflect.Struct && !Tagged(f.Type):
			if err := b.writeFields(one, start); err != nil {
				return err
			}
			continue
		}
		if b.Len() > start {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:", Name(f.Name))
		if err := b.write(one); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// writeMap appends a map with its keys in order, so that equal values have equal JSON.
func (b *writer) writeMap(v reflect.Value) error {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := b.writeTagged(key); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := b.write(v.MapIndex(key)); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// least returns a number of bytes that the JSON of a value has at least, those of its texts and
// one for each entry of a list, or one that is more than most. It is asked before a value is
// written that encoding/json writes as a whole. No document has a field that another one hides.
func least(v reflect.Value, most int) (n int) {
	if t := v.Type(); t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		return 0 // its fields need not be in it
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return least(v.Elem(), most)
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && n <= most; i++ {
			n += 1 + least(v.Index(i), most-n)
		}
	case reflect.Map:
		for values := v.MapRange(); n <= most && values.Next(); {
			n += 1 + least(values.Value(), most-n)
		}
	case reflect.Struct:
		for f, one := range v.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" && n <= most {
				n += least(one, most-n)
			}
		}
	default:
	}
	return n
}

// read sets a value from JSON. null is the zero value, as encoding/json has it. A value that was
// there before is replaced and not added to, but for the fields of a struct that the JSON does not
// have. The value can be set: it is behind a pointer, an entry of a list, or new.
func read(data []byte, v reflect.Value) error {
	if Tagged(v.Type()) {
		return json.Unmarshal(data, v.Addr().Interface())
	}
	if string(bytes.TrimSpace(data)) == "null" {
		v.SetZero()
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return read(data, v.Elem())
	case reflect.Struct:
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return err
		}
		return readFields(fields, v)
	case reflect.Slice:
		return readList(data, v)
	case reflect.Map:
		var entries map[string]json.RawMessage
		if err := json.Unmarshal(data, &entries); err != nil {
			return err
		}
		v.Set(reflect.MakeMapWithSize(v.Type(), len(entries)))
		for key, one := range entries {
			value := reflect.New(v.Type().Elem()).Elem()
			if err := read(one, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
		return nil
	default:
		return json.Unmarshal(data, v.Addr().Interface())
	}
}

// readFields sets the fields of a struct that are known. Those of an embedded struct are in the
// same object. The error names the field, and in a struct within it the way there.
func readFields(fields map[string]json.RawMessage, v reflect.Value) error {
	for f, one := range v.Fields() {
		if f.Anonymous && f.Type.Kind() == reflect.Struct && !Tagged(f.Type) {
			if err := readFields(fields, one); err != nil {
				return err
			}
			continue
		}
		name := Name(f.Name)
		data, given := fields[name]
		if !given || !f.IsExported() {
			continue
		}
		if err := read(data, one); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// readList sets a slice, which has its own memory afterwards. The error names the entry, from 0.
func readList(data []byte, v reflect.Value) error {
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i := range list {
		if err := read(list[i], v.Index(i)); err != nil {
			return fmt.Errorf("%d: %w", i, err)
		}
	}
	return nil
}
