// Package codec translates between the structs of package forge and the
// messages of proto/forge/v1. There is no code per type: a plan is made once
// from both sides, and a field that only one of them has is an error.
//
// The rules: a field is found under its name in snake_case; a string type that
// is an enum on the wire has the values ENUM_NAME_VALUE, and is empty for
// ENUM_NAME_UNSPECIFIED; a pointer is nil where a field is unset; a zero value
// is unset.
package codec

import (
	"bytes"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec translates values of T. It is safe for concurrent use.
type Codec[T any] struct {
	plan *structPlan
}

// New plans the translation between T and messages of m's type.
func New[T any](m proto.Message) (*Codec[T], error) {
	p, err := planner{}.structOf(reflect.TypeFor[T](), m.ProtoReflect().Type())
	if err != nil {
		return nil, fmt.Errorf("plan the wire format: %w", err)
	}
	return &Codec[T]{plan: p}, nil
}

// Must is New for variables: it panics where New fails, and whether New fails
// depends on nothing but the code.
func Must[T any](m proto.Message) *Codec[T] {
	c, err := New[T](m)
	if err != nil {
		panic(err)
	}
	return c
}

// Marshal returns v in protobuf's binary format, the same bytes for the same
// value. It fails when v holds an enum's value that the wire does not know, a
// number that is too large, or two of what only one may be set.
func (c *Codec[T]) Marshal(v *T) ([]byte, error) {
	m := c.plan.typ.New()
	if err := c.plan.encode(reflect.ValueOf(v).Elem(), m); err != nil {
		return nil, fmt.Errorf("encode %s: %w", c.name(), err)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m.Interface())
}

// Unmarshal reads protobuf's binary format. The error is a *GarbageError or an
// *UnknownError.
func (c *Codec[T]) Unmarshal(data []byte) (T, error) {
	m := c.plan.typ.New()
	if err := proto.Unmarshal(data, m.Interface()); err != nil {
		var zero T
		return zero, &GarbageError{Message: c.name(), Err: err}
	}
	return c.decode(m)
}

// ParseJSON reads protobuf's JSON format. The error is a *GarbageError or
// an *UnknownError.
func (c *Codec[T]) ParseJSON(data []byte) (T, error) {
	var zero T
	m := c.plan.typ.New()
	if err := protojson.Unmarshal(data, m.Interface()); err != nil {
		lenient := protojson.UnmarshalOptions{DiscardUnknown: true}
		if lenient.Unmarshal(data, c.plan.typ.New().Interface()) == nil {
			return zero, &UnknownError{Message: c.name(), What: err.Error()}
		}
		return zero, &GarbageError{Message: c.name(), Err: err}
	}
	return c.decode(m)
}

// LooksLikeJSON reports whether data is JSON rather than binary: no message
// here has a field whose tag is an opening brace.
func LooksLikeJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

func (c *Codec[T]) decode(m protoreflect.Message) (T, error) {
	var v T
	err := c.plan.decode(m, reflect.ValueOf(&v).Elem())
	if err != nil {
		var zero T
		return zero, typed(c.name(), err)
	}
	return v, nil
}

func (c *Codec[T]) name() string { return string(c.plan.typ.Descriptor().Name()) }
