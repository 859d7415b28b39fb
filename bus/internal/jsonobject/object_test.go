package jsonobject

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// request has a field of each kind that requests have.
type request struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	All   bool     `json:"all"`
	List  []string `json:"list"`
}

// Check finds no mistake of its own.
func (*request) Check() []forge.FieldError { return nil }

// TestMistakesAreToldAtOnce reads an object in which everything is wrong: each
// mistake is told by its field.
func TestMistakesAreToldAtOnce(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "a", "count": 1, "all": true, "list": ["b"]}`: "",
		`{"name": null}`: "",
		`{"name": 1, "count": "2", "all": 3, "list": 4, "x": 5}`: "all count list name x",
		`{"name": "a", "name": "b"}`:                             "name",
		`{"Name": "a"}`:                                          "Name",
		`{"count": 1.5}`:                                         "count",
	} {
		var errs []forge.FieldError
		o, err := Parse([]byte(text), "", &errs)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		o.Fill(&request{})
		var got []string
		for _, e := range errs {
			got = append(got, e.Field)
		}
		slices.Sort(got)
		if fields := strings.Join(got, " "); fields != want {
			t.Errorf("%s: %q, want %q", text, fields, want)
		}
	}
	for _, text := range []string{"", "[]", "{", `{"a": 1} {}`, "null", `{"a"}`} {
		var errs []forge.FieldError
		if _, err := Parse([]byte(text), "", &errs); err == nil {
			t.Errorf("%q is taken for an object", text)
		}
	}
}

// FuzzParse takes any bytes apart. What is taken for an object is one for
// encoding/json as well, with the same fields; one that is given twice is noted.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `{"name": "a", "count": 1, "in": {"b": [1, 2]}}`, `{"a": 1, "a": 2}`, `{"a": "\ud800"}`, "{\"a\":1}\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var errs []forge.FieldError
		o, err := Parse(data, "", &errs)
		if err != nil {
			return
		}
		var known map[string]json.RawMessage
		if err := json.Unmarshal(data, &known); err != nil || len(known) != len(o.values) {
			t.Fatalf("%d fields, and for encoding/json %d, %v", len(o.values), len(known), err)
		}
		for name := range known {
			if !o.Has(name) {
				t.Errorf("%q is not there", name)
			}
		}
		o.Bound(8)
		o.Fill(&request{})
		if inner, ok := o.Object("in"); ok {
			inner.Only("a")
		}
	})
}
