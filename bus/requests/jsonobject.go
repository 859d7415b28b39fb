package requests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// jsonObject is a JSON object from outside. Mistakes in it are noted by field,
// and reading goes on, so that the sender is told of all of them at once.
type jsonObject struct {
	// path is that of the object, with a dot at its end; empty at the top.
	path string
	// values has the object's fields, not parsed yet.
	values map[string]json.RawMessage
	// errs is shared with the objects around and inside this one.
	errs *[]forge.FieldError
}

// readObject takes an object apart. Names are exact, and each comes once. The
// error is for data that is not one object and nothing else.
func readObject(data []byte, path string, errs *[]forge.FieldError) (jsonObject, error) {
	o := jsonObject{path: path, values: map[string]json.RawMessage{}, errs: errs}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, errors.New("is not a JSON object")
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return o, fmt.Errorf("is not JSON: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return o, fmt.Errorf("is not JSON: %w", err)
		}
		key, _ := name.(string)
		if _, twice := o.values[key]; twice {
			o.note(key, "is given twice")
		}
		o.values[key] = value
	}
	if _, err := d.Token(); err != nil {
		return o, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return o, errors.New("has something after its end")
	}
	return o, nil
}

// note adds a mistake about a field of this object.
func (o *jsonObject) note(field, reason string) {
	*o.errs = append(*o.errs, forge.FieldError{Field: o.path + field, Reason: reason})
}

// read sets into to a field's value. A field that is absent or null leaves it
// as it is. kind names the type in an error: "a string".
func (o *jsonObject) read(field string, into any, kind string) {
	value, ok := o.values[field]
	if !ok || string(value) == "null" {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		o.note(field, "is not "+kind)
	}
}

func (o *jsonObject) text(field string, into *string)   { o.read(field, into, "a string") }
func (o *jsonObject) list(field string, into *[]string) { o.read(field, into, "a list of strings") }
func (o *jsonObject) whole(field string, into *int)     { o.read(field, into, "a whole number") }
func (o *jsonObject) has(field string) bool             { return o.values[field] != nil }
func (o *jsonObject) hasAny(fields ...string) bool      { return slices.ContainsFunc(fields, o.has) }

// object returns a field that is an object; false if it is absent, null, or
// none, which is noted.
func (o *jsonObject) object(field string) (*jsonObject, bool) {
	value, ok := o.values[field]
	if !ok || string(value) == "null" {
		return nil, false
	}
	inner, err := readObject(value, o.path+field+".", o.errs)
	if err != nil {
		o.note(field, err.Error())
		return nil, false
	}
	return &inner, true
}

// fill reads the fields of a request into a struct that has their names in its tags. It notes the fields
// that the struct does not have, and the mistakes that it finds in itself.
func (o *jsonObject) fill(request interface{ Check() []forge.FieldError }) {
	v := reflect.ValueOf(request).Elem()
	var known []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		o.read(name, v.Field(i).Addr().Interface(), kinds[v.Field(i).Kind()])
	}
	o.only(known...)
	*o.errs = append(*o.errs, request.Check()...)
}

// kinds names the types of fields in errors.
var kinds = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Slice: "a list of strings",
	reflect.Struct: "a time such as 2026-03-01T12:00:00Z",
}

// only notes the fields that are not among the known ones.
func (o *jsonObject) only(known ...string) {
	for _, field := range slices.Sorted(maps.Keys(o.values)) {
		if !slices.Contains(known, field) {
			o.note(field, "is not known; what is: "+strings.Join(known, ", "))
		}
	}
}
