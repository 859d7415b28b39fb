package strictyaml_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

type document struct {
	inner `yaml:",inline"`

	ID     string            `yaml:"id"`
	Answer *string           `yaml:"answer"`
	List   []string          `yaml:"list"`
	Count  int               `yaml:"count"`
	Ratio  float64           `yaml:"ratio"`
	Flag   bool              `yaml:"flag"`
	Wait   time.Duration     `yaml:"wait"`
	At     time.Time         `yaml:"at"`
	With   map[string]string `yaml:"with"`
	Parts  []part            `yaml:"parts"`
	Sub    *part             `yaml:"sub"`
	Secret string            `yaml:"-"`
}

type inner struct {
	Inlined string `yaml:"inlined"`
}

type part struct {
	Name string `yaml:"name"`
	Next *part  `yaml:"next"`
}

func decode(in string) (document, error) {
	var d document
	_, err := strictyaml.Decode([]byte(in), &d, strictyaml.Options{File: "f.yaml"})
	return d, err
}

func TestDecode(t *testing.T) {
	got, err := decode("\ufeffid: a\r\nanswer: ''\r\nlist: [no, 1e3, 0123, 2026-01-02, ~x, 'null']\r\ncount: -5\r\nratio: 0.25\r\n" +
		"flag: true\r\nwait: 1m30s\r\nat: 2026-01-02T03:04:05Z\r\nwith: {NO: yes, X: '1'}\r\nparts:\r\n  - name: b\r\n    next: {name: c}\r\ninlined: d\r\n")
	if err != nil {
		t.Fatal(err)
	}
	empty := ""
	want := document{
		ID: "a", Answer: &empty, List: []string{"no", "1e3", "0123", "2026-01-02", "~x", "null"}, Count: -5, Ratio: 0.25,
		Flag: true, Wait: 90 * time.Second, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		With:  map[string]string{"NO": "yes", "X": "1"},
		Parts: []part{{Name: "b", Next: &part{Name: "c"}}}, inner: inner{Inlined: "d"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(document{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeKeepsWhatIsNotNamed(t *testing.T) {
	d := document{ID: "kept", List: []string{"kept"}, Sub: &part{Name: "gone"}, Answer: new(string)}
	if _, err := strictyaml.Decode([]byte("list:\nsub: ~\nanswer: null\n"), &d, strictyaml.Options{}); err != nil {
		t.Fatal(err)
	}
	want := document{ID: "kept", List: []string{"kept"}}
	if diff := cmp.Diff(want, d, cmp.AllowUnexported(document{})); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"id: a\nlits: []", `f.yaml:2: lits: unknown key; did you mean "list"?`},
		{"secret: x", "f.yaml:1: secret: unknown key"},
		{"parts:\n- name: a\n- naame: b", `f.yaml:3: parts[1].naame: unknown key; did you mean "name"?`},
		{"id: a\nid: a", "f.yaml:2: id: duplicate key, first given on line 1"},
		{"with: {A: x, A: x}", "with.A: duplicate key"},
		{"id: &x a\nlist: [*x]", "f.yaml:1: id: has an anchor (&x)"},
		{"a: &a [x]\nlist: *a", "list: is an alias (*a)"},
		{"with:\n  <<: {A: x}", "f.yaml:2: with: has a merge key (<<)"},
		{"id: !secret a", "id: has a tag (!secret)"},
		{"count: !!int 3", "count: has a tag (!!int)"},
		{"? [a]\n: b", "has a key that is a list; keys must be text"},
		{"~: b", "has a key that is null"},
		{"id: a\n---\nid: b", "f.yaml:2: holds a second document"},
		{"id: a\n---\n", "holds a second document"},
		{"id:", "id: must not be empty"},
		{"id: ~", "id: must not be empty"},
		{"list: [a, ~]", "list[1]: must not be empty"},
		{"id: [a]", "id: must be a single value, not a list"},
		{"list: a", `list: must be a list, not "a"`},
		{"parts: [a]", `parts[0]: must be a mapping of keys to values, not "a"`},
		{"- a", "f.yaml:1: must be a mapping of keys to values, not a list"},
		{"count: 010", `count: must be a whole number, not "010"`},
		{"count: 0x10", "must be a whole number"},
		{"count: 1_000", "must be a whole number"},
		{"count: +1", "must be a whole number"},
		{"count: -0", "must be a whole number"},
		{"count: 1e3", "must be a whole number"},
		{"count: 99999999999999999999", "must be a whole number"},
		{"count: '1'", "must be a whole number"},
		{"ratio: .inf", "must be a number"},
		{"ratio: 1e400", "must be a number"},
		{"ratio: 01.5", "must be a number"},
		{"flag: yes", `flag: must be true or false, not "yes"`},
		{"flag: True", "must be true or false"},
		{"wait: 5", "must be a duration"},
		{"at: 2026-01-02", "must be a time"},
		{"id: \xff", "f.yaml:1: is not UTF-8"},
		{"id: é\nlist: [\"\ufffd\"]\n\n# \xc3", "f.yaml:4: is not UTF-8"},
		{"flag: " + strings.Repeat("語", 41), "must be true or false, not \"" + strings.Repeat("語", 40) + "\"..."},
		{"id: a\nlist: [\n", "is not valid YAML"},
		{"id: \"a\x00b\"", "is not valid YAML"},
		{"\tid: a", "is not valid YAML"},
		{"id: " + strings.Repeat("x", 70_000), "f.yaml: is 70004 bytes long; at most 65536 are allowed"},
		{"list: " + strings.Repeat("[", 60) + strings.Repeat("]", 60), "must be a single value"},
		{strings.Repeat("{sub: ", 1) + strings.Repeat("{next: ", 60) + "~" + strings.Repeat("}", 61), "is nested deeper than 50 levels"},
		{"list: " + strings.Repeat("[", 30_000), "is not valid YAML"},
	} {
		_, err := decode(tt.in)
		var list strictyaml.Errors
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &list) {
			t.Errorf("%.60q:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}

func TestErrorsKnowTheirPlace(t *testing.T) {
	var d document
	_, err := strictyaml.Decode([]byte("id: a\nlist: [\"b\", ~]\nflag: 3\n"), &d, strictyaml.Options{FirstLine: 11})
	want := strictyaml.Errors{
		{Line: 12, Column: 13, Field: "list[1]", Reason: "must not be empty; give a value or leave the key out"},
		{Line: 13, Column: 7, Field: "flag", Reason: `must be true or false, not "3"`},
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Error(diff)
	}
	var first *strictyaml.Error
	if !errors.As(err, &first) || first.Line != 12 {
		t.Errorf("errors.As found %v", first)
	}
}

func TestPositionsServeLaterChecks(t *testing.T) {
	var d document
	pos, err := strictyaml.Decode([]byte("id: a\nparts:\n  - name: b\n  - name: c\n"), &d, strictyaml.Options{File: "f"})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"parts[1].name": "f:4: parts[1].name: is taken",
		"parts[1].next": "f:4: parts[1].next: is taken",
		"wait":          "f:1: wait: is taken",
	} {
		if got := pos.Errorf(field, "is %s", "taken").Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !pos.Has("parts[0].name") || pos.Has("wait") {
		t.Error("does not know which keys the file has")
	}
}

// TestManyKeysAreFast guards against work that grows with the square of the keys.
func TestManyKeysAreFast(t *testing.T) {
	var b strings.Builder
	b.WriteString("with:\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "  k%d: v\n", i)
	}
	wait.Until(t, "it takes less than five seconds", func() bool {
		var d document
		started := time.Now()
		_, err := strictyaml.Decode([]byte(b.String()), &d, strictyaml.Options{MaxBytes: 1 << 20})
		if err != nil || len(d.With) != 20_000 {
			t.Fatalf("%d keys, %v", len(d.With), err)
		}
		return time.Since(started) < 5*time.Second
	})
}

func TestEncode(t *testing.T) {
	answer := "no"
	in := struct {
		Title  string            `yaml:"title"`
		Body   string            `yaml:"body"`
		Answer *string           `yaml:"answer"`
		Empty  *string           `yaml:"empty"`
		List   []string          `yaml:"list"`
		With   map[string]string `yaml:"with"`
		Gone   string            `yaml:"gone,omitempty"`
	}{"0123", "one\n\n  two: x\n", &answer, nil, []string{"1e3", "plain"}, map[string]string{"b": "2", "a": "~"}, ""}
	got, err := strictyaml.Encode(in)
	want := `title: "0123"
body: |
  one

    two: x
answer: "no"
empty: null
list:
  - "1e3"
  - plain
with:
  a: "~"
  b: "2"
`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if out, err := strictyaml.Encode(map[string]string{"a": "\xff"}); err == nil {
		t.Errorf("a string that is not UTF-8 became %q", out)
	}
}

func TestClosest(t *testing.T) {
	known := []string{"low", "med", "high", "verify", "depends_on"}
	for s, want := range map[string]string{
		"medium": "med", "hgih": "high", "Verify": "verify", "dependson": "depends_on", "xyz": "", "": "", "recipes": "",
	} {
		if got := strictyaml.Closest(s, known); got != want {
			t.Errorf("Closest(%q) = %q, want %q", s, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"id: a", "list: [a, b]", "parts: [{name: x, next: {name: y}}]",
		"a: &a [*a]", "with: {<<: x}", "- - - -", "? a\n: b", "id: |\n  x\n", "#",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		_, err := strictyaml.Decode(data, &d, strictyaml.Options{File: "f"})
		if err == nil {
			return
		}
		var list strictyaml.Errors
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("error is %T: %v", err, err)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{
		"", "no", "1e3", "\n", " \n x", "a\nb\n", "a: b # c", "\ttab\n",
		"x\r\ny", "---\n", "|", "\u2028", "trailing \n", "\ufeff", "<<", "!!str", "*a",
		"\n\n", "if x\n\treturn\t\n\t\n", "x\n\t",
	} {
		f.Add(s, s)
	}
	type pair struct {
		A string            `yaml:"a"`
		M map[string]string `yaml:"m"`
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		in := pair{A: a, M: map[string]string{"k": b}}
		data, err := strictyaml.Encode(in)
		if err != nil {
			return // not UTF-8
		}
		var out pair
		if _, err := strictyaml.Decode(data, &out, strictyaml.Options{MaxBytes: 1 << 24}); err != nil {
			t.Fatalf("%q is written as\n%s\nwhich is refused: %v", a, data, err)
		}
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatalf("written as\n%s\n%s", data, diff)
		}
	})
}

func TestValue(t *testing.T) {
	got, err := strictyaml.Value([]byte("a: [1, -2.5, true, null, x, '1', 2026-01-02]\nb: {c: |\n    two\n    lines\n  }\n"), strictyaml.Options{})
	if err == nil {
		t.Fatalf("got %v", got)
	}
	got, err = strictyaml.Value([]byte("a: [1, -2.5, true, null, x, '1', 2026-01-02]\nb:\n  c: |\n    two\n    lines\n"), strictyaml.Options{})
	want := map[string]any{
		"a": []any{int64(1), -2.5, true, nil, "x", "1", "2026-01-02"},
		"b": map[string]any{"c": "two\nlines\n"},
	}
	if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for in, want := range map[string]string{"a: 1\na: 2": "duplicate key", "a: &x 1": "anchor", "a: 99999999999999999999": ""} {
		if got, err := strictyaml.Value([]byte(in), strictyaml.Options{}); err == nil && want != "" || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", in, got, err, want)
		}
	}
	if got, err := strictyaml.Value([]byte("# nothing\n"), strictyaml.Options{}); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// named is a struct that may be written as one text.
type named struct {
	Name string `yaml:"name"`
	Size int    `yaml:"size,omitempty"`
}

func (n *named) SetShort(text string) { n.Name = text }

func (n *named) Short() (string, bool) { return n.Name, n.Size == 0 }

func TestShort(t *testing.T) {
	const text = "all:\n  - a: b\n  - 5\n  - name: c\n    size: 2\n"
	var got struct {
		All []named `yaml:"all"`
	}
	if _, err := strictyaml.Decode([]byte("all: ['a: b', 5, {name: c, size: 2}]"), &got, strictyaml.Options{}); err != nil {
		t.Fatal(err)
	}
	if want := []named{{"a: b", 0}, {"5", 0}, {"c", 2}}; !slices.Equal(got.All, want) {
		t.Errorf("got %+v", got.All)
	}
	data, err := strictyaml.Encode(got)
	if want := strings.ReplaceAll(strings.ReplaceAll(text, "- a: b", "- 'a: b'"), "- 5", `- "5"`); err != nil || string(data) != want {
		t.Errorf("got %s, %v", data, err)
	}
	_, err = strictyaml.Decode([]byte("all: [[a]]"), &got, strictyaml.Options{})
	if err == nil || !strings.Contains(err.Error(), "all[0]: must be a mapping of keys to values, not a list") {
		t.Errorf("got %v", err)
	}
}
