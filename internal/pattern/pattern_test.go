package pattern_test

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Every method gives what the one of the same name gives.
func TestMethods(t *testing.T) {
	const expr, text = `(\w)=(\d*)`, "a=1, b=, c=22"
	got, want := reflect.ValueOf(pattern.New(expr)), reflect.ValueOf(regexp.MustCompile(expr))
	for i := range got.NumMethod() {
		name := got.Type().Method(i).Name
		var in []reflect.Value
		for arg := range got.Method(i).Type().Ins() {
			switch arg.Kind() {
			case reflect.String:
				in = append(in, reflect.ValueOf(map[int]string{0: text, 1: "$2-$1"}[len(in)]))
			case reflect.Int:
				in = append(in, reflect.ValueOf(2))
			case reflect.Func:
				in = append(in, reflect.ValueOf(func(s string) string { return "<" + s + ">" }))
			default:
				t.Fatalf("%s takes a %s", name, arg)
			}
		}
		if g, w := got.Method(i).Call(in)[0].Interface(), want.MethodByName(name).Call(in)[0].Interface(); !reflect.DeepEqual(g, w) {
			t.Errorf("%s returns %v, want %v", name, g, w)
		}
	}
}

// A wrong expression is found by its first use.
func TestWrong(t *testing.T) {
	p := pattern.New("(")
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	p.MatchString("")
}
