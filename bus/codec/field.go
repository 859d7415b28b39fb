package codec

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// decoder is the state of one call of Unmarshal, shared by all messages inside
// the outer one.
type decoder struct {
	// unknown describes the first field or enum value that this version does
	// not know; empty if it knows all. Decoding goes on after it: bytes that
	// turn out to be garbage further on are reported as garbage, and only a
	// message that is well formed to its end as unknown.
	unknown string
}

// keepFirst keeps the first description and drops later ones.
func (d *decoder) keepFirst(what string) {
	if d.unknown == "" {
		d.unknown = what
	}
}

// field translates one field of a struct, its tag included. A field that is
// unset, see the rules in the package comment, is left out of the wire.
type field interface {
	writer
	reader
}

// writer writes one field of a struct.
type writer interface {
	// append appends tag and value to b, or returns b itself if the field is
	// unset. The caller of structPlan.append recognises a field of a oneof that
	// is set by the added bytes.
	append(b []byte, v reflect.Value) ([]byte, error)
}

// reader reads one field of a message.
type reader interface {
	// accepts reports whether consume can read a value of this wire type. A
	// value that it cannot read counts as a field that is not known.
	accepts(t protowire.Type) bool
	// consume sets v to the value at the beginning of b, behind a tag of type
	// t, and returns the size of that value in bytes.
	consume(d *decoder, t protowire.Type, b []byte, v reflect.Value) (int, error)
}

// errAlternatives is the error of a message in which two fields of a oneof are
// set.
var errAlternatives = errors.New("only one of the alternatives may be set")

// append appends the fields of a struct to b, in the order of p.writes. An
// error names the field by its path.
func (p *structPlan) append(b []byte, v reflect.Value) ([]byte, error) {
	var seen uint64
	for _, f := range p.writes {
		before := len(b)
		var err error
		if b, err = f.append(b, v.FieldByIndex(f.index)); err != nil {
			if f.name == "" { // a union's error names the one that is set
				return nil, err
			}
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

// consume reads a message, which is all of b, into the struct v. A field that
// is not known is skipped and noted, not refused at once: see decoder.unknown.
// Fields may come in any order; a single field that comes twice has its last
// value, as protobuf asks for.
func (p *structPlan) consume(d *decoder, b []byte, v reflect.Value) error {
	var seen uint64
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var f *readPlan
		if int(num) < len(p.reads) {
			f = p.reads[num]
		}
		if f == nil || !f.accepts(typ) {
			if typ == protowire.StartGroupType { // no message has one, and the first brace of a text in JSON reads as such
				return errGroup
			}
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return protowire.ParseError(n)
			}
			d.keepFirst("field " + itoa(int64(num)) + " of " + string(p.name))
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

// errGroup says that bytes have a group, as no version ever writes it: they are
// garbage, and not of a newer version. The server answers in JSON, wherever the
// sender of a request wants, and a sender can choose a part of it.
var errGroup = errors.New("has a group")

// plainField is a field that is set unless it is the zero value of its type.
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

// unionReader reads one of the types behind a sealed interface. Several of them share the
// interface's field of the struct.
type unionReader struct {
	typ  reflect.Type // of the struct
	elem structValue
}

func (f unionReader) accepts(t protowire.Type) bool { return t == f.elem.wire() }

func (f unionReader) consume(d *decoder, _ protowire.Type, b []byte, v reflect.Value) (int, error) {
	p := reflect.New(f.typ)
	n, err := f.elem.consume(d, b, p.Elem())
	if err != nil {
		return n, err
	}
	v.Set(p)
	return n, nil
}

// unionWriter writes the field of a sealed interface as the one type that its value has, a
// pointer to a struct.
type unionWriter map[reflect.Type]member

// member is one of the types behind a sealed interface, as it is written.
type member struct {
	pointerField
	name protoreflect.Name
}

// append writes the one field of a oneof that is set. A type without a field is an error of the
// program, and a nil pointer one of the value: it would come back as another value than it was.
func (w unionWriter) append(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return b, nil
	}
	v = v.Elem()
	f, ok := w[v.Type()]
	if !ok {
		return nil, fmt.Errorf("there is no message for %s", v.Type())
	}
	err := errors.New("is a nil pointer") // decoding could only give an empty struct back
	if !v.IsNil() {
		b, err = f.append(b, v)
	}
	if err != nil {
		return nil, &fieldError{string(f.name), err}
	}
	return b, nil
}

// pointerField is a pointer, which is set if it is not nil, also if it points
// to a zero value.
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

// listField is a slice of strings or structs, each element under a tag of its
// own. Nil and empty are the same on the wire, and are decoded as nil.
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

// packedField is a slice of numbers, which are written together under one tag.
// It also reads numbers that each have a tag, since protobuf allows writers
// both forms.
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

// consume reads numbers in both forms, packed and one by one: the format has
// readers accept either, since a writer of an older version may use the other one.
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

// mapField is a map[string]string. Entries are written in the order of their
// keys, so that a value has always the same bytes. Nil and empty are the same
// on the wire, and are decoded as nil.
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

// entryPlan reads one entry of a map: on the wire it is a message with the
// fields key and value. A missing one is empty.
var entryPlan = pairPlan("MapEntry", "key", stringValue{}, "value", stringValue{})

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
