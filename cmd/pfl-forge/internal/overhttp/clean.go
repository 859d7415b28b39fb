package overhttp

import (
	"reflect"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// clean is called with every answer, before anything else sees it. Commands clean
// what they print as well, because over NATS nothing else does; but some words,
// such as a status, they print as they are, since only the rules make them there.
//
// It has every text of an answer steer no terminal, and name nothing in a
// deceptive way. v points to the answer. A word, such as a status or an id,
// stays on one line; what has a type of its own is one.
func clean(v any) { cleaned(reflect.ValueOf(v)) }

// cleaned is clean for a value that can be set, and for all that it leads to. Fields that
// are not exported, such as those of a time, were not in the answer and are left alone.
func cleaned(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			cleaned(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				cleaned(field)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleaned(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	case reflect.String:
		if !v.CanSet() {
			return
		}
		if v.Type() == reflect.TypeFor[string]() {
			v.SetString(term.Sanitize(v.String()))
		} else {
			v.SetString(term.Line(v.String()))
		}
	default: // numbers and times have no text
	}
}

// cleanMap cleans the keys and the values of a map. Two keys that become one leave one
// of their values, which is enough: only a server that wants to deceive has such keys.
func cleanMap(v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		return
	}
	for _, key := range v.MapKeys() {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		cleaned(value)
		v.SetMapIndex(key, reflect.Value{})
		v.SetMapIndex(reflect.ValueOf(term.Line(key.String())).Convert(v.Type().Key()), value)
	}
}
