package codec

import (
	"errors"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// decoder is the state of one decoding.
type decoder struct {
	unknown string // the first thing that is unknown
}

func (d *decoder) note(what string) {
	if d.unknown == "" {
		d.unknown = what
	}
}

// field translates a field with its tag. An unset one is not on the wire.
type field interface {
	append(b []byte, v reflect.Value) ([]byte, error)
	accepts(t protowire.Type) bool
	// consume reads what follows one tag, and returns its size.
	consume(d *decoder, t protowire.Type, b []byte, v reflect.Value) (int, error)
}

var errAlternatives = errors.New("only one of the alternatives may be set")

func (p *structPlan) append(b []byte, v reflect.Value) ([]byte, error) {
	var seen uint64
	for _, f := range p.fields {
		before := len(b)
		var err error
		if b, err = f.append(b, v.FieldByIndex(f.index)); err != nil {
			return nil, &fieldError{string(f.name), err}
		}
		if len(b) == before {
			continue
		}
		if seen&f.oneof != 0 {
			return nil, &fieldError{string(f.name), errAlternatives}
		}
		seen |= f.oneof
	}
	return b, nil
}

// consume reads a message to its end. What is unknown is noted, because bytes
// that are garbage further on are garbage.
func (p *structPlan) consume(d *decoder, b []byte, v reflect.Value) error {
	var seen uint64
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var f *fieldPlan
		if int(num) < len(p.byNumber) {
			f = p.byNumber[num]
		}
		if f == nil || !f.accepts(typ) {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			d.note("field " + itoa(int64(num)) + " of " + string(p.name))
			b = b[n:]
			continue
		}
		if seen&f.oneof != 0 {
			return &fieldError{string(f.name), errAlternatives}
		}
		seen |= f.oneof
		n, err := f.consume(d, typ, b, v.FieldByIndex(f.index))
		if err != nil {
			return &fieldError{string(f.name), err}
		}
		b = b[n:]
	}
	return nil
}

// plainField is set when it is not zero.
type plainField struct {
	num  protowire.Number
	elem value
}

func (f plainField) append(b []byte, v reflect.Value) ([]byte, error) {
	if f.elem.isZero(v) {
		return b, nil
	}
	return f.elem.append(protowire.AppendTag(b, f.num, f.elem.wire()), v)
}

func (f plainField) accepts(t protowire.Type) bool { return t == f.elem.wire() }

func (f plainField) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	return f.elem.consume(d, b, v)
}

// unionField is one type behind a sealed interface. It is set when the value
// is of that type.
type unionField struct {
	num  protowire.Number
	typ  reflect.Type // pointer to the struct
	elem structValue
}

func (f unionField) append(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() || v.Elem().Type() != f.typ {
		return b, nil
	}
	p := v.Elem()
	if p.IsNil() {
		return nil, errors.New("is a nil pointer")
	}
	return f.elem.append(protowire.AppendTag(b, f.num, f.elem.wire()), p.Elem())
}

func (f unionField) accepts(t protowire.Type) bool { return t == f.elem.wire() }

func (f unionField) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	p := reflect.New(f.typ.Elem())
	n, err := f.elem.consume(d, b, p.Elem())
	if err != nil {
		return n, err
	}
	v.Set(p)
	return n, nil
}

// pointerField is set when it is not nil.
type pointerField struct {
	num  protowire.Number
	elem value
}

func (f pointerField) append(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return b, nil
	}
	return f.elem.append(protowire.AppendTag(b, f.num, f.elem.wire()), v.Elem())
}

func (f pointerField) accepts(t protowire.Type) bool { return t == f.elem.wire() }

func (f pointerField) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return f.elem.consume(d, b, v.Elem())
}

// listField is a slice; nil and empty are the same.
type listField struct {
	num  protowire.Number
	elem value
}

func (f listField) append(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	for i := range v.Len() {
		if b, err = f.elem.append(protowire.AppendTag(b, f.num, f.elem.wire()), v.Index(i)); err != nil {
			return nil, &fieldError{itoa(int64(i)), err}
		}
	}
	return b, nil
}

func (f listField) accepts(t protowire.Type) bool { return t == f.elem.wire() }

func (f listField) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	i := v.Len()
	v.Grow(1)
	v.SetLen(i + 1)
	n, err := f.elem.consume(d, b, v.Index(i))
	if err != nil {
		return 0, &fieldError{itoa(int64(i)), err}
	}
	return n, nil
}

// packedField is a slice of numbers. Others may send each under its own tag.
type packedField struct {
	num  protowire.Number
	elem value
}

func (f packedField) append(b []byte, v reflect.Value) ([]byte, error) {
	if v.Len() == 0 {
		return b, nil
	}
	return appendSized(protowire.AppendTag(b, f.num, protowire.BytesType), func(b []byte) ([]byte, error) {
		var err error
		for i := range v.Len() {
			if b, err = f.elem.append(b, v.Index(i)); err != nil {
				return nil, &fieldError{itoa(int64(i)), err}
			}
		}
		return b, nil
	})
}

func (f packedField) accepts(t protowire.Type) bool {
	return t == protowire.BytesType || t == f.elem.wire()
}

func (f packedField) consume(d *decoder, t protowire.Type, b []byte, v reflect.Value) (int, error) {
	if t != protowire.BytesType {
		return listField(f).consume(d, t, b, v)
	}
	packed, size := protowire.ConsumeBytes(b)
	if size < 0 {
		return 0, protowire.ParseError(size)
	}
	for len(packed) > 0 {
		n, err := listField(f).consume(d, t, packed, v)
		if err != nil {
			return 0, err
		}
		packed = packed[n:]
	}
	return size, nil
}

// mapField is a map[string]string; nil and empty are the same.
type mapField struct{ num protowire.Number }

func (f mapField) append(b []byte, v reflect.Value) ([]byte, error) {
	m := v.Interface().(map[string]string)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b, _ = appendSized(protowire.AppendTag(b, f.num, protowire.BytesType), func(b []byte) ([]byte, error) {
			b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), valid(key))
			return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), valid(m[key])), nil
		})
	}
	return b, nil
}

func (f mapField) accepts(t protowire.Type) bool { return t == protowire.BytesType }

// entryPlan reads the entries of maps.
var entryPlan = &structPlan{name: "MapEntry", byNumber: []*fieldPlan{
	1: {field: plainField{1, stringValue{}}, index: []int{0}, name: "key"},
	2: {field: plainField{2, stringValue{}}, index: []int{1}, name: "value"},
}}

func (f mapField) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	var entry struct{ Key, Value string }
	n, err := structValue{entryPlan}.consume(d, b, reflect.ValueOf(&entry).Elem())
	if err != nil {
		return 0, err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	v.Interface().(map[string]string)[entry.Key] = entry.Value
	return n, nil
}
