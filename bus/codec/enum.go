package codec

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// enumValue is a string type with a closed set of values.
type enumValue struct {
	zero
	varint
	name    protoreflect.Name
	numbers map[string]protoreflect.EnumNumber
	values  map[protoreflect.EnumNumber]string
}

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

func (e enumValue) append(b []byte, v reflect.Value) ([]byte, error) {
	n, ok := e.numbers[v.String()]
	if !ok {
		return nil, fmt.Errorf("%q is no %s", v.String(), e.name)
	}
	return protowire.AppendVarint(b, uint64(n)), nil
}

func (e enumValue) consume(d *decoder, b []byte, v reflect.Value) (int, error) {
	x, n, err := consumeVarint(b)
	if err != nil {
		return 0, err
	}
	value, ok := e.values[protoreflect.EnumNumber(x)]
	if !ok {
		d.note("value " + itoa(int64(int32(x))) + " of enum " + string(e.name))
	}
	v.SetString(value)
	return n, nil
}
