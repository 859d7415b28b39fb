package codec

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// structPlan is how a struct becomes a message and back.
type structPlan struct {
	typ    protoreflect.MessageType
	fields []fieldPlan // in the order of the struct's fields
}

// fieldPlan is one field on both sides.
type fieldPlan struct {
	index int // in the struct
	desc  protoreflect.FieldDescriptor
	oneof uint64 // a bit per oneof of the message; 0 outside of any
	conv  converter
}

// converter translates the value of one field. put is never given an unset
// value: isZero says which those are.
type converter interface {
	isZero(v reflect.Value) bool
	put(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error
	get(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error
}

// planner remembers the plans that it made: one per struct type.
type planner map[reflect.Type]*structPlan

func (p planner) structOf(t reflect.Type, mt protoreflect.MessageType) (*structPlan, error) {
	if known := p[t]; known != nil {
		if known.typ != mt {
			return nil, fmt.Errorf("%s is both %s and %s", t, known.typ.Descriptor().Name(), mt.Descriptor().Name())
		}
		return known, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is no struct, as %s is", t, mt.Descriptor().Name())
	}
	plan := &structPlan{typ: mt}
	p[t] = plan
	descs := mt.Descriptor().Fields()
	for i := range t.NumField() {
		f := t.Field(i)
		fd := descs.ByName(protoreflect.Name(snake(f.Name)))
		if fd == nil {
			return nil, fmt.Errorf("%s.%s: message %s has no field %s", t, f.Name, mt.Descriptor().Name(), snake(f.Name))
		}
		conv, err := p.field(f.Type, mt.New(), fd)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		plan.fields = append(plan.fields, fieldPlan{index: i, desc: fd, oneof: oneofBit(fd), conv: conv})
	}
	if descs.Len() != len(plan.fields) {
		return nil, fmt.Errorf("%s has %d fields, message %s has %d", t, len(plan.fields), mt.Descriptor().Name(), descs.Len())
	}
	return plan, nil
}

func oneofBit(fd protoreflect.FieldDescriptor) uint64 {
	if o := fd.ContainingOneof(); o != nil {
		return 1 << o.Index()
	}
	return 0
}

// field plans a field of type t; m is an empty message that has it.
func (p planner) field(t reflect.Type, m protoreflect.Message, fd protoreflect.FieldDescriptor) (converter, error) {
	switch {
	case fd.IsMap():
		if t != reflect.TypeFor[map[string]string]() || fd.MapKey().Kind() != protoreflect.StringKind ||
			fd.MapValue().Kind() != protoreflect.StringKind {
			return nil, fmt.Errorf("only maps from strings to strings are known, not %s", t)
		}
		return mapField{}, nil
	case fd.IsList():
		if t.Kind() != reflect.Slice {
			return nil, fmt.Errorf("%s is not repeated", t)
		}
		elem, err := p.scalar(t.Elem(), fd, func() protoreflect.MessageType {
			return m.NewField(fd).List().NewElement().Message().Type()
		})
		return listField{elem: elem}, err
	}
	message := func() protoreflect.MessageType { return m.NewField(fd).Message().Type() }
	if t.Kind() == reflect.Pointer {
		elem, err := p.scalar(t.Elem(), fd, message)
		return pointerField{elem: elem, typ: t.Elem()}, err
	}
	elem, err := p.scalar(t, fd, message)
	return valueField{elem: elem}, err
}

// snake turns a Go name into a field's: RelevantFiles into relevant_files,
// BudgetUSD into budget_usd.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 {
			afterLower := !unicode.IsUpper(rs[i-1])
			beforeLower := i+1 < len(rs) && unicode.IsLower(rs[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
