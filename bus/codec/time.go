package codec

import (
	"reflect"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// spanPlan translates the two messages google.protobuf.Timestamp and Duration,
// which have the same fields: seconds, and nanoseconds that go with them.
var spanPlan = pairPlan("Timestamp or Duration", "seconds", intValue{bits: 64}, "nanos", intValue{bits: 32})

// span is a Timestamp or a Duration as a struct that spanPlan fits. Seconds and
// Nanos have the same sign in a Duration; in a Timestamp Nanos is never
// negative.
type span struct{ Seconds, Nanos int64 }

func (s *span) append(b []byte) ([]byte, error) {
	return structValue{spanPlan}.append(b, reflect.ValueOf(s).Elem())
}

func (s *span) consume(d *decoder, b []byte) (int, error) {
	return structValue{spanPlan}.consume(d, b, reflect.ValueOf(s).Elem())
}

// timeValue is a time.Time as a Timestamp. The zero time is unset; other times
// are decoded in UTC, without a monotonic reading. Years outside of 1 to 9999
// are errors.
type timeValue struct{ sized }

func (timeValue) isZero(v reflect.Value) bool { return timeOf(v).IsZero() }

func (timeValue) append(b []byte, v reflect.Value) ([]byte, error) {
	ts := timestamppb.Timestamp{Seconds: timeOf(v).Unix(), Nanos: int32(timeOf(v).Nanosecond())}
	if err := ts.CheckValid(); err != nil {
		return nil, err
	}
	s := span{ts.GetSeconds(), int64(ts.GetNanos())}
	return s.append(b)
}

func (timeValue) consume(d *decoder, b []byte, v reflect.Value) (int, error) {
	var s span
	n, err := s.consume(d, b)
	if err != nil {
		return 0, err
	}
	ts := timestamppb.Timestamp{Seconds: s.Seconds, Nanos: int32(s.Nanos)}
	*timeOf(v) = ts.AsTime()
	return n, ts.CheckValid()
}

// timeOf returns the time that v, which is addressable, holds.
func timeOf(v reflect.Value) *time.Time { return v.Addr().Interface().(*time.Time) }

// durationValue is a time.Duration, exact to the nanosecond. 0 is unset. A
// Duration that does not fit into 64 bits of nanoseconds is cut off at the
// largest time.Duration.
type durationValue struct {
	zero
	sized
}

func (durationValue) append(b []byte, v reflect.Value) ([]byte, error) {
	d := time.Duration(v.Int())
	s := span{int64(d / time.Second), int64(d % time.Second)}
	return s.append(b)
}

func (durationValue) consume(d *decoder, b []byte, v reflect.Value) (int, error) {
	var s span
	n, err := s.consume(d, b)
	if err != nil {
		return 0, err
	}
	dur := durationpb.Duration{Seconds: s.Seconds, Nanos: int32(s.Nanos)}
	v.SetInt(int64(dur.AsDuration()))
	return n, dur.CheckValid()
}
