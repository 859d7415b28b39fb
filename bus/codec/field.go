package codec

import (
	"errors"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"
)

func (p *structPlan) encode(v reflect.Value, m protoreflect.Message) error {
	var seen uint64
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.conv.isZero(fv) {
			continue
		}
		if seen&f.oneof != 0 {
			return &fieldError{string(f.desc.Name()), errors.New("only one of the alternatives may be set")}
		}
		seen |= f.oneof
		if err := f.conv.put(fv, m, f.desc); err != nil {
			return &fieldError{string(f.desc.Name()), err}
		}
	}
	return nil
}

func (p *structPlan) decode(m protoreflect.Message, v reflect.Value) error {
	if raw := m.GetUnknown(); len(raw) > 0 {
		return unknown{fmt.Sprintf("%d bytes of fields that %s does not have", len(raw), m.Descriptor().Name())}
	}
	for i := range p.fields {
		f := &p.fields[i]
		if !m.Has(f.desc) {
			continue
		}
		if err := f.conv.get(m, f.desc, v.Field(f.index)); err != nil {
			return &fieldError{string(f.desc.Name()), err}
		}
	}
	return nil
}

// valueField is a field that is set when it is not zero.
type valueField struct{ elem scalar }

func (c valueField) isZero(v reflect.Value) bool { return c.elem.isZero(v) }

func (c valueField) put(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
	pv, err := c.elem.put(v)
	if err == nil {
		m.Set(fd, pv)
	}
	return err
}

func (c valueField) get(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
	return c.elem.get(m.Get(fd), v)
}

// pointerField is a field that is set when it is not nil.
type pointerField struct {
	elem scalar
	typ  reflect.Type
}

func (c pointerField) isZero(v reflect.Value) bool { return v.IsNil() }

func (c pointerField) put(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
	return valueField{c.elem}.put(v.Elem(), m, fd)
}

func (c pointerField) get(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
	ptr := reflect.New(c.typ)
	v.Set(ptr)
	return c.elem.get(m.Get(fd), ptr.Elem())
}

// listField is a slice; nil and empty are the same.
type listField struct{ elem scalar }

func (c listField) isZero(v reflect.Value) bool { return v.Len() == 0 }

func (c listField) put(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
	list := m.Mutable(fd).List()
	for i := range v.Len() {
		pv, err := c.elem.put(v.Index(i))
		if err != nil {
			return &fieldError{fmt.Sprint(i), err}
		}
		list.Append(pv)
	}
	return nil
}

func (c listField) get(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
	list := m.Get(fd).List()
	n := list.Len()
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		if err := c.elem.get(list.Get(i), v.Index(i)); err != nil {
			return &fieldError{fmt.Sprint(i), err}
		}
	}
	return nil
}

// mapField is a map[string]string; nil and empty are the same.
type mapField struct{}

func (mapField) isZero(v reflect.Value) bool { return v.Len() == 0 }

func (mapField) put(v reflect.Value, m protoreflect.Message, fd protoreflect.FieldDescriptor) error {
	dst := m.Mutable(fd).Map()
	for key, value := range v.Interface().(map[string]string) {
		dst.Set(protoreflect.ValueOfString(valid(key)).MapKey(), protoreflect.ValueOfString(valid(value)))
	}
	return nil
}

func (mapField) get(m protoreflect.Message, fd protoreflect.FieldDescriptor, v reflect.Value) error {
	src := m.Get(fd).Map()
	dst := make(map[string]string, src.Len())
	src.Range(func(k protoreflect.MapKey, val protoreflect.Value) bool {
		dst[k.String()] = val.String()
		return true
	})
	v.Set(reflect.ValueOf(dst))
	return nil
}
