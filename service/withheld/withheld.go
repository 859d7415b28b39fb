// Package withheld takes secrets out of what a worker reports.
package withheld

import (
	"reflect"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/proof"
)

// Result returns a result with every text redacted: it goes into the journal,
// and from there into files and prompts.
func Result(r *redact.Redactor, res forge.Result) forge.Result {
	texts(reflect.ValueOf(&res).Elem(), r.Text)
	return res
}

// texts replaces every string in a value, recursively.
func texts(v reflect.Value, by func(string) string) {
	// To a search for secrets the payload of an envelope looks like one, and a text with
	// something taken out of it would not be the one that was signed.
	if v.Type() == reflect.TypeFor[forge.Envelope]() {
		if !publishable(forge.Envelope(v.String()), by) {
			v.SetString("")
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		if s := by(v.String()); s != v.String() {
			v.SetString(s)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			texts(v.Elem(), by)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), by)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			texts(value, by)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			texts(field, by)
		}
	default:
	}
}

// publishable reports whether a signed statement is one in which by replaces
// nothing. What is in an envelope is encoded, and a text without a part of it
// would not be what was signed, so one with a secret is not told at all.
func publishable(e forge.Envelope, by func(string) string) bool {
	s, err := proof.Unseal(e)
	return err == nil && by(string(s.Payload)) == string(s.Payload)
}
