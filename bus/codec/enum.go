package codec

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// enumValue is a string type with a closed set of values. On the wire a value
// is a number; the descriptor names it ENUM_NAME_VALUE, which is "value" in Go,
// and number 0 is "".
type enumValue struct {
	zero
	varint
	name protoreflect.Name
	// numbers and values map the Go value to its number and back. No Go value
	// has two numbers.
	numbers map[string]protoreflect.EnumNumber
	values  map[protoreflect.EnumNumber]string
}

// newEnum returns the translation of an enum. It fails if a name does not begin
// with the enum's own, in upper case.
func newEnum(ed protoreflect.EnumDescriptor) (enumValue, error) {
	e := enumValue{
		name:    ed.Name(),
		numbers: map[string]protoreflect.EnumNumber{},
		values:  map[protoreflect.EnumNumber]string{},
	}
	prefix := strings.ToUpper(snake(string(ed.Name()))) + "_"
	for i := range ed.Values().Len() {
		v := ed.Values().Get(i)
		value, ok := strings.CutPrefix(string(v.Name()), prefix)
		if !ok {
			return e, fmt.Errorf("%s of enum %s does not start with %s", v.Name(), ed.Name(), prefix)
		}
		value = strings.ToLower(value)
		if v.Number() == 0 {
			value = ""
		}
		e.numbers[value] = v.Number()
		e.values[v.Number()] = value
	}
	return e, nil
}

// append refuses a value that the enum does not have: nothing is written that
// no reader would understand.
func (e enumValue) append(b []byte, v reflect.Value) ([]byte, error) {
	n, ok := e.numbers[v.String()]
	if !ok {
		return nil, fmt.Errorf("%q is no %s", v.String(), e.name)
	}
	return protowire.AppendVarint(b, uint64(n)), nil
}

// consume notes a number that the enum does not have, which a newer version may
// have sent, and leaves the value empty.
func (e enumValue) consume(d *decoder, b []byte, v reflect.Value) (int, error) {
	x, n, err := consumeVarint(b)
	if err != nil {
		return 0, err
	}
	value, ok := e.values[protoreflect.EnumNumber(x)]
	if !ok {
		d.keepFirst("value " + itoa(int64(int32(x))) + " of enum " + string(e.name))
	}
	v.SetString(value)
	return n, nil
}
