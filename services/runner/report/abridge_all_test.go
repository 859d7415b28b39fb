package report

import (
	"reflect"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// TestAbridgeOfAll: whatever type of message or output has settings or a signed statement,
// in whatever depth, a reader is not told them. A type that gains one fails here.
func TestAbridgeOfAll(t *testing.T) {
	var all []forge.Message
	for _, spec := range messages.All() {
		if spec.To == messages.PartyIntent { // no other one is in the journal of an intent
			all = append(all, spec.Message)
		}
	}
	for _, out := range forge.Outputs() {
		all = append(all, &forge.Result{Output: out})
	}
	for _, m := range all {
		v := reflect.ValueOf(m)
		fill(v, 0)
		before := untold(v)
		told := Abridge([]forge.Record{{Events: []forge.Event{{Message: m}}}})[0].Events[0].Message
		if n := untold(reflect.ValueOf(told)); n > 0 {
			t.Errorf("%T tells %d of %d settings and statements", m, n, before)
		}
		if untold(v) != before {
			t.Errorf("what was given of %T is changed", m)
		}
	}
}

// mostDepth bounds how deep messages are filled, because some types hold themselves.
const mostDepth = 6

// fill sets every signed statement and every setting in a value, and has an
// element in each list and something behind each pointer.
func fill(v reflect.Value, depth int) {
	switch {
	case depth > mostDepth:
	case v.Type() == reflect.TypeFor[forge.Envelope]():
		v.SetString("tell-nobody")
	case v.Type() == reflect.TypeFor[forge.Policy]():
		v.FieldByName("MaxReviewRetries").SetInt(7)
	case v.Kind() == reflect.Interface && !v.IsNil():
		fill(v.Elem(), depth)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), depth)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, depth+1)
			}
		}
	}
}

// untold counts the signed statements and the settings in a value.
func untold(v reflect.Value) (n int) {
	switch {
	case v.Type() == reflect.TypeFor[forge.Envelope]() || v.Type() == reflect.TypeFor[forge.Policy]():
		if !v.IsZero() {
			n = 1
		}
	case v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			n = untold(v.Elem())
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			n += untold(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			n += untold(field)
		}
	}
	return n
}
