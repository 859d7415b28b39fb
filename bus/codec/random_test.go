package codec_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"
	"unicode"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// fill sets v to something random, about half of its fields.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC()))
		return
	case time.Duration:
		v.SetInt(r.Int64N(1<<50) - 1<<49)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		fillStruct(r, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(2), 2))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{text(r): text(r), "": text(r)}))
	case reflect.String:
		v.SetString(text(r))
		if vs := constants()[v.Type().Name()]; vs != nil {
			v.SetString(vs[r.IntN(len(vs))])
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int:
		v.SetInt(int64(int32(r.Uint32())))
	case reflect.Int64:
		v.SetInt(int64(r.Uint64()))
	case reflect.Float64:
		v.SetFloat(r.NormFloat64())
	default:
		panic(fmt.Sprintf("no rule for %s", v.Type()))
	}
}

func fillStruct(r *rand.Rand, v reflect.Value) {
	for _, f := range v.Fields() {
		if f.Kind() == reflect.Interface {
			fillUnion(r, f)
		} else if r.IntN(2) == 0 {
			fill(r, f)
		}
	}
}

// fillUnion sets a sealed interface to a value of one of its types.
func fillUnion(r *rand.Rand, v reflect.Value) {
	var types []reflect.Type
	switch v.Type() {
	case reflect.TypeFor[forge.Message]():
		for _, spec := range messages.All() {
			types = append(types, reflect.TypeOf(spec.Message))
		}
	case reflect.TypeFor[forge.Output]():
		for _, out := range forge.Outputs() {
			types = append(types, reflect.TypeOf(out))
		}
	case reflect.TypeFor[forge.Input]():
		for _, in := range forge.Inputs() {
			types = append(types, reflect.TypeOf(in))
		}
	default:
		panic(fmt.Sprintf("no rule for %s", v.Type()))
	}
	p := reflect.New(types[r.IntN(len(types))].Elem())
	fill(r, p.Elem())
	v.Set(p)
}

func text(r *rand.Rand) string {
	rs := make([]rune, r.IntN(6))
	for i := range rs {
		for {
			rs[i] = rune(r.IntN(0x3000))
			if unicode.IsPrint(rs[i]) || rs[i] == 0 || rs[i] == '\n' {
				break
			}
		}
	}
	return string(rs)
}
