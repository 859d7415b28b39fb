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

// value translates a value without its tag.
type value interface {
	wire() protowire.Type
	isZero(v reflect.Value) bool
	append(b []byte, v reflect.Value) ([]byte, error)
	consume(d *decoder, b []byte, v reflect.Value) (int, error)
}

type zero struct{}

func (zero) isZero(v reflect.Value) bool { return v.IsZero() }

// varint and sized are what a value's bytes look like.
type (
	varint struct{}
	sized  struct{}
)

func (varint) wire() protowire.Type { return protowire.VarintType }
func (sized) wire() protowire.Type  { return protowire.BytesType }

// consumeVarint returns a number and its size.
func consumeVarint(b []byte) (uint64, int, error) {
	x, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, 0, protowire.ParseError(n)
	}
	return x, n, nil
}

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

// valid replaces what is not UTF-8: what an agent printed can be cut within a
// character, and a result must not be lost because of that.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

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
	if c.bits == 32 {
		x = uint64(int32(x))
	}
	v.SetInt(int64(x))
	return n, err
}

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

// structValue is a message in a message.
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

// appendSized adds what content adds, with its size before it.
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

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
