package codec

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// value translates a single value without its tag: an element of a list, the
// target of a pointer, or a plain field.
type value interface {
	// wire returns the type for the value's tag.
	wire() protowire.Type
	// isZero reports whether v is unset, as the field of a message.
	isZero(v reflect.Value) bool
	// append appends the value to b.
	append(b []byte, v reflect.Value) ([]byte, error)
	// consume sets v, which is addressable, to the value at the beginning of b,
	// and returns the value's size in bytes.
	consume(d *decoder, b []byte, v reflect.Value) (int, error)
}

// zero is embedded in values that are unset as the zero value of their Go type.
type zero struct{}

func (zero) isZero(v reflect.Value) bool { return v.IsZero() }

// varint and sized are embedded in values whose bytes are a variable-length
// number, or are preceded by their size.
type (
	varint struct{}
	sized  struct{}
)

func (varint) wire() protowire.Type { return protowire.VarintType }
func (sized) wire() protowire.Type  { return protowire.BytesType }

// consumeVarint returns the number at the beginning of b and its size in bytes.
func consumeVarint(b []byte) (uint64, int, error) {
	x, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, protowire.ParseError(n)
	}
	return x, n, nil
}

// stringValue is a string or a type made of one. It is UTF-8 on the wire.
type stringValue struct {
	zero
	sized
}

func (stringValue) append(b []byte, v reflect.Value) ([]byte, error) {
	return protowire.AppendString(b, valid(v.String())), nil
}

func (stringValue) consume(_ *decoder, b []byte, v reflect.Value) (int, error) {
	s, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return 0, protowire.ParseError(n)
	}
	if !utf8.Valid(s) {
		return 0, errors.New("not UTF-8")
	}
	v.SetString(string(s))
	return n, nil
}

// valid returns s with U+FFFD in place of bytes that are not UTF-8. The output
// of an agent can be cut within a character, and its result must not be lost
// because of that.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// boolValue is a bool: on the wire 1, or absent.
type boolValue struct {
	zero
	varint
}

func (boolValue) append(b []byte, v reflect.Value) ([]byte, error) {
	return protowire.AppendVarint(b, protowire.EncodeBool(v.Bool())), nil
}

func (boolValue) consume(_ *decoder, b []byte, v reflect.Value) (int, error) {
	x, n, err := consumeVarint(b)
	v.SetBool(protowire.DecodeBool(x))
	return n, err
}

// intValue is an int as int32, or an int64 as int64. bits is 32 or 64. Negative
// numbers take ten bytes on the wire, as protobuf has it for both.
type intValue struct {
	zero
	varint
	bits int
}

func (c intValue) append(b []byte, v reflect.Value) ([]byte, error) {
	x := v.Int()
	if c.bits == 32 && x != int64(int32(x)) {
		return nil, fmt.Errorf("%d does not fit into 32 bits", x)
	}
	return protowire.AppendVarint(b, uint64(x)), nil
}

func (c intValue) consume(_ *decoder, b []byte, v reflect.Value) (int, error) {
	x, n, err := consumeVarint(b)
	// Protobuf truncates a longer number in a field of 32 bits.
	if c.bits == 32 {
		x = uint64(int32(x))
	}
	v.SetInt(int64(x))
	return n, err
}

// floatValue is a float64 as double. Both zeros are unset.
type floatValue struct{ zero }

func (floatValue) wire() protowire.Type { return protowire.Fixed64Type }

func (floatValue) append(b []byte, v reflect.Value) ([]byte, error) {
	return protowire.AppendFixed64(b, math.Float64bits(v.Float())), nil
}

func (floatValue) consume(_ *decoder, b []byte, v reflect.Value) (int, error) {
	x, n := protowire.ConsumeFixed64(b)
	if n < 0 {
		return 0, protowire.ParseError(n)
	}
	v.SetFloat(math.Float64frombits(x))
	return n, nil
}

// structValue is a struct as a message in a message. A struct that is zero is
// unset; a pointer to one is not, see pointerField.
type structValue struct{ plan *structPlan }

func (structValue) wire() protowire.Type        { return protowire.BytesType }
func (structValue) isZero(v reflect.Value) bool { return v.IsZero() }

func (c structValue) append(b []byte, v reflect.Value) ([]byte, error) {
	return appendSized(b, func(b []byte) ([]byte, error) { return c.plan.append(b, v) })
}

func (c structValue) consume(d *decoder, b []byte, v reflect.Value) (int, error) {
	content, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return 0, protowire.ParseError(n)
	}
	return n, c.plan.consume(d, content, v)
}

// appendSized appends to b whatever content appends, with its size in bytes
// before it. The size is known only afterwards: one byte is left free for it,
// and the content is moved if the size takes more.
func appendSized(b []byte, content func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(b)
	b, err := content(append(b, 0)) // most sizes take one byte
	if err != nil {
		return nil, err
	}
	size := len(b) - start - 1
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		b = append(b, make([]byte, more)...)
		copy(b[start+1+more:], b[start+1:start+1+size])
	}
	protowire.AppendVarint(b[:start], uint64(size))
	return b, nil
}

// itoa formats a field number or an index for an error.
func itoa(n int64) string { return strconv.FormatInt(n, 10) }
