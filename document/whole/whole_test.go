package whole

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// fill gives every field below a value a content that is not zero, as deep as it goes.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*n), int64(*n)).UTC()))
			return
		}
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 8)
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		v.SetInt(int64(*n))
	}
}

// TestWhole writes an intent and a list in which every field of the domain has a content, and
// reads them back: no field is lost, and a field that the vocabulary gains is there by itself.
func TestWhole(t *testing.T) {
	n := 0
	var view forge.View
	fill(reflect.ValueOf(&view).Elem(), &n)
	intent := Intent{View: view, Work: document.Work{PlanTasks: []document.Task{{ID: "a-001", Title: "t"}}}, Records: []string{"cg=="}, Broken: "b"}
	fill(reflect.ValueOf(&intent.Attempts).Elem(), &n)
	data, err := Answer{Intent: &intent}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseIntent(data); err != nil || !reflect.DeepEqual(got, intent) {
		t.Errorf("read is %+v, %v, want %+v", got, err, intent)
	}
	list := List{Intents: []forge.Summary{view.Summary}, Project: []forge.Summary{view.Summary}, Next: "a"}
	if data, err = (Answer{List: &list}).JSON(); err != nil {
		t.Fatal(err)
	}
	if got, err := ParseList(data); err != nil || !reflect.DeepEqual(got, list) {
		t.Errorf("read is %+v, %v, want %+v", got, err, list)
	}
}

// TestListOf goes through a long list page by page, also where a page had no room.
func TestListOf(t *testing.T) {
	var all []forge.Summary
	for i := range 3*most/2 + 7 {
		all = append(all, forge.Summary{Key: forge.Key{Project: "p", Intent: forge.IntentID(fmt.Sprintf("i-%04d", i))}})
	}
	var got []forge.Summary
	for after, pages := forge.IntentID(""), 0; ; pages++ {
		l := ListOf(all, nil, after)
		if pages == 1 && !l.Halve() {
			t.Fatal("a page of many cannot be halved")
		}
		got = append(got, l.Intents...)
		if after = l.Next; after == "" {
			break
		}
	}
	if !reflect.DeepEqual(got, all) {
		t.Errorf("the pages have %d of %d", len(got), len(all))
	}
	if l := (List{Intents: all[:1]}); l.Halve() {
		t.Error("one is halved")
	}
}

// TestRequest finds every mistake in a request.
func TestRequest(t *testing.T) {
	if errs := (&Request{Intent: "a/b", After: "..", Records: -1}).Check(); len(errs) != 3 {
		t.Errorf("found are %v", errs)
	}
	if errs := (&Request{Intent: "a", After: "b", Records: 1}).Check(); len(errs) != 0 {
		t.Errorf("found are %v", errs)
	}
}
