package codec

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scalar translates a single value: an element of a list, what a pointer
// points to, or a plain field.
type scalar interface {
	isZero(v reflect.Value) bool
	put(v reflect.Value) (protoreflect.Value, error)
	get(pv protoreflect.Value, v reflect.Value) error
}

func (p planner) scalar(t reflect.Type, fd protoreflect.FieldDescriptor, message func() protoreflect.MessageType) (scalar, error) {
	type pair struct {
		goKind reflect.Kind
		kind   protoreflect.Kind
	}
	if t == reflect.TypeFor[time.Duration]() {
		return durationScalar{}, wants(fd, "google.protobuf.Duration")
	}
	if t == reflect.TypeFor[time.Time]() {
		return timeScalar{}, wants(fd, "google.protobuf.Timestamp")
	}
	switch (pair{t.Kind(), fd.Kind()}) {
	case pair{reflect.Struct, protoreflect.MessageKind}:
		plan, err := p.structOf(t, message())
		return messageScalar{plan}, err
	case pair{reflect.String, protoreflect.EnumKind}:
		return newEnum(fd.Enum())
	case pair{reflect.String, protoreflect.StringKind}:
		return stringScalar{}, nil
	case pair{reflect.Bool, protoreflect.BoolKind}:
		return boolScalar{}, nil
	case pair{reflect.Int, protoreflect.Int32Kind}:
		return intScalar{}, nil
	case pair{reflect.Int64, protoreflect.Int64Kind}:
		return int64Scalar{}, nil
	case pair{reflect.Float64, protoreflect.DoubleKind}:
		return floatScalar{}, nil
	}
	return nil, fmt.Errorf("there is no rule for %s as %s", t, fd.Kind())
}

func wants(fd protoreflect.FieldDescriptor, name protoreflect.FullName) error {
	if m := fd.Message(); m == nil || m.FullName() != name {
		return fmt.Errorf("must be a %s", name)
	}
	return nil
}

type zero struct{}

func (zero) isZero(v reflect.Value) bool { return v.IsZero() }

type stringScalar struct{ zero }

func (stringScalar) put(v reflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfString(valid(v.String())), nil
}

func (stringScalar) get(pv protoreflect.Value, v reflect.Value) error {
	v.SetString(pv.String())
	return nil
}

// valid replaces what is not UTF-8: what an agent printed can be cut within a
// character, and a result must not be lost because of that.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

type boolScalar struct{ zero }

func (boolScalar) put(v reflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfBool(v.Bool()), nil
}

func (boolScalar) get(pv protoreflect.Value, v reflect.Value) error {
	v.SetBool(pv.Bool())
	return nil
}

type intScalar struct{ zero }

func (intScalar) put(v reflect.Value) (protoreflect.Value, error) {
	n := v.Int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		return protoreflect.Value{}, fmt.Errorf("%d does not fit into 32 bits", n)
	}
	return protoreflect.ValueOfInt32(int32(n)), nil
}

func (intScalar) get(pv protoreflect.Value, v reflect.Value) error {
	v.SetInt(pv.Int())
	return nil
}

type int64Scalar struct{ zero }

func (int64Scalar) put(v reflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfInt64(v.Int()), nil
}

func (int64Scalar) get(pv protoreflect.Value, v reflect.Value) error {
	v.SetInt(pv.Int())
	return nil
}

type floatScalar struct{ zero }

func (floatScalar) put(v reflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfFloat64(v.Float()), nil
}

func (floatScalar) get(pv protoreflect.Value, v reflect.Value) error {
	v.SetFloat(pv.Float())
	return nil
}

type timeScalar struct{}

func (timeScalar) isZero(v reflect.Value) bool { return v.Addr().Interface().(*time.Time).IsZero() }

func (timeScalar) put(v reflect.Value) (protoreflect.Value, error) {
	ts := timestamppb.New(*v.Addr().Interface().(*time.Time))
	return protoreflect.ValueOfMessage(ts.ProtoReflect()), ts.CheckValid()
}

func (timeScalar) get(pv protoreflect.Value, v reflect.Value) error {
	ts := pv.Message().Interface().(*timestamppb.Timestamp)
	*v.Addr().Interface().(*time.Time) = ts.AsTime()
	return ts.CheckValid()
}

type durationScalar struct{ zero }

func (durationScalar) put(v reflect.Value) (protoreflect.Value, error) {
	return protoreflect.ValueOfMessage(durationpb.New(time.Duration(v.Int())).ProtoReflect()), nil
}

func (durationScalar) get(pv protoreflect.Value, v reflect.Value) error {
	d := pv.Message().Interface().(*durationpb.Duration)
	v.SetInt(int64(d.AsDuration()))
	return d.CheckValid()
}

type messageScalar struct{ plan *structPlan }

func (messageScalar) isZero(v reflect.Value) bool { return v.IsZero() }

func (c messageScalar) put(v reflect.Value) (protoreflect.Value, error) {
	m := c.plan.typ.New()
	return protoreflect.ValueOfMessage(m), c.plan.encode(v, m)
}

func (c messageScalar) get(pv protoreflect.Value, v reflect.Value) error {
	return c.plan.decode(pv.Message(), v)
}
