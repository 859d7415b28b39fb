// Package jsonobject reads JSON objects that come from outside, strictly: each field by its
// exact name, once, and of its type, and nothing that is not known. Mistakes are collected by
// field, so that the sender is told of all of them at once and not of one after the other.
package jsonobject

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

// Object is a JSON object from outside. Mistakes in it are noted by field,
// and reading goes on, so that the sender is told of all of them at once.
type Object struct {
	// Path is that of the object, with a dot at its end; empty at the top.
	Path string
	// values has the object's fields, not parsed yet.
	values map[string]json.RawMessage
	// Errs is shared with the objects around and inside this one.
	Errs *[]forge.FieldError
}

// Parse takes an object apart. Names are exact, and each comes once. The
// error is for data that is not one object and nothing else.
func Parse(data []byte, path string, errs *[]forge.FieldError) (Object, error) {
	o := Object{Path: path, values: map[string]json.RawMessage{}, Errs: errs}
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
			o.AddError(key, "is given twice")
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

// AddError adds a mistake about a field of this object.
func (o *Object) AddError(field, reason string) {
	*o.Errs = append(*o.Errs, forge.FieldError{Field: o.Path + field, Reason: reason})
}

// Read sets into to a field's value. A field that is absent or null leaves it
// as it is. kind names the type in an error: "a string".
func (o *Object) Read(field string, into any, kind string) {
	value, ok := o.values[field]
	if !ok || string(value) == "null" {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		o.AddError(field, "is not "+kind)
	}
}

// Text reads a field that is a string.
func (o *Object) Text(field string, into *string) { o.Read(field, into, "a string") }

// List reads a field that is a list of strings.
func (o *Object) List(field string, into *[]string) { o.Read(field, into, "a list of strings") }

// Whole reads a field that is a whole number.
func (o *Object) Whole(field string, into *int) { o.Read(field, into, "a whole number") }

// Has reports whether the object has a field, null included.
func (o *Object) Has(field string) bool { return o.values[field] != nil }

// Bound notes the fields whose values have more bytes than are allowed.
func (o *Object) Bound(most int) {
	for _, field := range slices.Sorted(maps.Keys(o.values)) {
		if size := len(o.values[field]); size > most {
			o.AddError(field, fmt.Sprintf("has %d bytes; at most %d are allowed", size, most))
		}
	}
}

// HasAny reports whether the object has one of the fields.
func (o *Object) HasAny(fields ...string) bool { return slices.ContainsFunc(fields, o.Has) }

// Object returns a field that is an object; false if it is absent, null, or
// none, which is noted.
func (o *Object) Object(field string) (*Object, bool) {
	value, ok := o.values[field]
	if !ok || string(value) == "null" {
		return nil, false
	}
	inner, err := Parse(value, o.Path+field+".", o.Errs)
	if err != nil {
		o.AddError(field, err.Error())
		return nil, false
	}
	return &inner, true
}

// Fill reads the fields of a request into a struct that has their names in its tags. It
// notes the fields that the struct does not have, and the mistakes that it finds in itself.
func (o *Object) Fill(request interface{ Check() []forge.FieldError }) {
	v := reflect.ValueOf(request).Elem()
	var known []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		o.Read(name, v.Field(i).Addr().Interface(), kinds[v.Field(i).Kind()])
	}
	o.Only(known...)
	*o.Errs = append(*o.Errs, request.Check()...)
}

// kinds names the types of fields in errors.
var kinds = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Int: "a whole number", reflect.Bool: "true or false", reflect.Slice: "a list of strings",
	reflect.Struct: "a time such as 2026-03-01T12:00:00Z",
}

// Only notes the fields that are not among the known ones.
func (o *Object) Only(known ...string) {
	for _, field := range slices.Sorted(maps.Keys(o.values)) {
		if !slices.Contains(known, field) {
			o.AddError(field, "is not known; what is: "+strings.Join(known, ", "))
		}
	}
}
