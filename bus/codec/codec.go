// Package codec translates between the structs of package forge and the wire
// format of proto/forge/v1. There is no code per type: a plan is made once from
// a struct type and a message's descriptor, and a field that only one of them
// has is an error. The bytes are read and written directly, without the
// generated messages, which takes a fifth of the time; tests compare the two.
//
// The rules: a field is found under its name in snake_case; a string type that
// is an enum on the wire has the values ENUM_NAME_VALUE, and is empty for
// ENUM_NAME_UNSPECIFIED; a pointer is nil where a field is unset; a zero value
// is unset; a sealed interface is a oneof, in which each of its types is a
// message of the same name; the fields of an embedded struct are fields of the
// message of the struct around it.
package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Codec translates values of T to bytes and back. Make one for each T as a variable, by [Must].
// It is safe for concurrent use.
type Codec[T any] struct {
	typ protoreflect.MessageType
	// plan returns the plan, which is made when it is first needed: many runs of a program end
	// without one message.
	plan func() *structPlan
}

// New plans the translation between T and messages of m's type. The error says
// where struct and message differ: names and types of all fields are compared,
// down to the last message.
func New[T any](m proto.Message) (*Codec[T], error) {
	typ := m.ProtoReflect().Type()
	p, err := planner{}.structOf(reflect.TypeFor[T](), typ.Descriptor())
	if err != nil {
		return nil, fmt.Errorf("plan the wire format: %w", err)
	}
	return &Codec[T]{typ: typ, plan: func() *structPlan { return p }}, nil
}

// Must is New for variables. Its codec plans when it is first used, and panics then where New
// fails: whether New fails depends on nothing but the code, and TestVariables of package bus has
// all of them plan.
func Must[T any](m proto.Message) *Codec[T] {
	typ := m.ProtoReflect().Type()
	plan := sync.OnceValue(func() *structPlan {
		shared.Lock()
		defer shared.Unlock()
		p, err := shared.planner.structOf(reflect.TypeFor[T](), typ.Descriptor())
		if err != nil {
			panic(fmt.Errorf("plan the wire format: %w", err))
		}
		return p
	})
	shared.Lock()
	defer shared.Unlock()
	shared.variables = append(shared.variables, func() { plan() })
	return &Codec[T]{typ: typ, plan: plan}
}

// PlanAll has every codec of [Must] plan now, and panics where one cannot. It returns how many
// there are.
func PlanAll() int {
	shared.Lock()
	all := slices.Clone(shared.variables)
	shared.Unlock()
	for _, plan := range all {
		plan()
	}
	return len(all)
}

// shared has the plans of all variables: a record has an event in it, which need not be planned
// twice.
var shared = struct {
	sync.Mutex
	planner   planner
	variables []func()
}{planner: planner{}}

// Marshal returns v in protobuf's binary format, the same bytes for the same
// value. It fails when v holds an enum's value that the wire does not know, a
// number that is too large, or two fields of which only one may be set.
func (c *Codec[T]) Marshal(v *T) ([]byte, error) {
	data, err := c.plan().append(make([]byte, 0, 512), reflect.ValueOf(v).Elem())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", c.name(), err)
	}
	return data, nil
}

// Unmarshal reads protobuf's binary format. The error is a *GarbageError or an
// *UnknownError, with the zero value of T. Text that is not UTF-8 is garbage.
func (c *Codec[T]) Unmarshal(data []byte) (T, error) {
	var v, zero T
	var d decoder
	if err := c.plan().consume(&d, data, reflect.ValueOf(&v).Elem()); err != nil {
		return zero, &GarbageError{Message: c.name(), Err: err}
	}
	if d.unknown != "" {
		return zero, &UnknownError{Message: c.name(), What: d.unknown}
	}
	return v, nil
}

// Known reads a message that may be of a newer version, without the fields and
// values that this version does not know. Of garbage it returns the zero value of T.
func (c *Codec[T]) Known(data []byte) T {
	var v, zero T
	if c.plan().consume(&decoder{}, data, reflect.ValueOf(&v).Elem()) != nil {
		return zero
	}
	return v
}

// ParseJSON reads protobuf's JSON format, as other systems may send it. The
// error is a *GarbageError or an *UnknownError, with the zero value of T.
// Everything that Unmarshal checks is checked as well: the message takes the
// way through the binary format.
func (c *Codec[T]) ParseJSON(data []byte) (T, error) {
	var zero T
	m := c.typ.New().Interface()
	if err := protojson.Unmarshal(data, m); err != nil {
		lenient := protojson.UnmarshalOptions{DiscardUnknown: true}
		if lenient.Unmarshal(data, c.typ.New().Interface()) == nil {
			return zero, &UnknownError{Message: c.name(), What: err.Error()}
		}
		return zero, &GarbageError{Message: c.name(), Err: err}
	}
	binary, err := proto.Marshal(m)
	if err != nil {
		return zero, &GarbageError{Message: c.name(), Err: err}
	}
	return c.Unmarshal(binary)
}

// LooksLikeJSON reports whether data is JSON rather than binary: no message
// here has a field whose tag is an opening brace.
func LooksLikeJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{"))
}

// name returns the message's name without its package, for errors.
func (c *Codec[T]) name() string { return string(c.typ.Descriptor().Name()) }
