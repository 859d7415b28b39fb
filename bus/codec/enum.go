package codec

import (
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// enumScalar is a string type with a closed set of values.
type enumScalar struct {
	zero
	name    protoreflect.Name
	numbers map[string]protoreflect.EnumNumber
	values  map[protoreflect.EnumNumber]string
}

func newEnum(ed protoreflect.EnumDescriptor) (enumScalar, error) {
	e := enumScalar{
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

func (e enumScalar) put(v reflect.Value) (protoreflect.Value, error) {
	n, ok := e.numbers[v.String()]
	if !ok {
		return protoreflect.Value{}, fmt.Errorf("%q is no %s", v.String(), e.name)
	}
	return protoreflect.ValueOfEnum(n), nil
}

func (e enumScalar) get(pv protoreflect.Value, v reflect.Value) error {
	value, ok := e.values[pv.Enum()]
	if !ok {
		return unknown{fmt.Sprintf("value %d of enum %s", pv.Enum(), e.name)}
	}
	v.SetString(value)
	return nil
}
