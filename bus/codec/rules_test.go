package codec_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// TestEnums checks that a closed set of package forge and its enum have the same
// values.
func TestEnums(t *testing.T) {
	if len(constants()) == 0 {
		t.Fatal("found no constants")
	}
	for typ, values := range constants() {
		ed, err := protoregistry.GlobalFiles.FindDescriptorByName("forge.v1." + protoreflect.FullName(typ))
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		var onWire []string
		prefix := enumPrefix(typ)
		for i := range ed.(protoreflect.EnumDescriptor).Values().Len() {
			onWire = append(onWire, string(ed.(protoreflect.EnumDescriptor).Values().Get(i).Name()))
		}
		want := []string{prefix + "UNSPECIFIED"}
		for _, v := range values {
			want = append(want, prefix+strings.ToUpper(v))
		}
		slices.Sort(onWire)
		slices.Sort(want)
		if !slices.Equal(onWire, want) {
			t.Errorf("%s has %q on the wire, want %q", typ, onWire, want)
		}
	}
}

// enumPrefix turns TaskStatus into TASK_STATUS_.
func enumPrefix(typ string) string {
	var b strings.Builder
	for i, r := range typ {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String() + "_"
}

// constants returns the values of package forge's typed string constants, by
// the name of their type.
var constants = sync.OnceValue(func() map[string][]string {
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		panic(err)
	}
	found := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			panic(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				addConstant(found, spec)
			}
			return true
		})
	}
	return found
})

func addConstant(found map[string][]string, spec *ast.ValueSpec) {
	typ, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
		value, err := strconv.Unquote(lit.Value)
		if err != nil {
			panic(err)
		}
		found[typ.Name] = append(found[typ.Name], value)
	}
}

func TestUnknown(t *testing.T) {
	c := codec.Must[forge.Event](&forgev1.Event{})
	tag := protowire.AppendTag
	edit := protowire.AppendVarint(tag(nil, 4, protowire.VarintType), 99) // risk
	for name, tt := range map[string]struct {
		data []byte
		what string
	}{
		"field":         {protowire.AppendVarint(tag(nil, 1000, protowire.VarintType), 1), "field 1000 of Event"},
		"type":          {protowire.AppendVarint(tag(nil, 1, protowire.VarintType), 1), "field 1 of Event"},
		"payload":       {protowire.AppendBytes(tag(nil, 999, protowire.BytesType), nil), "field 999 of Event"},
		"enum":          {protowire.AppendBytes(tag(nil, 6, protowire.BytesType), edit), "value 99 of enum Risk"},
		"field of part": {protowire.AppendBytes(tag(nil, 2, protowire.BytesType), []byte("\xf8\x3f\x01")), "field 1023 of Key"},
	} {
		_, err := c.Unmarshal(tt.data)
		var unknown *codec.UnknownError
		if !errors.As(err, &unknown) || unknown.Message != "Event" || unknown.What != tt.what {
			t.Errorf("%s: got %v, want %q", name, err, tt.what)
		}
	}
	for _, js := range []string{`{"colour": 1}`, `{"edit": {"risk": "RISK_HUGE"}}`, `{"edit": {"risk": 99}}`} {
		_, err := c.ParseJSON([]byte(js))
		if _, ok := errors.AsType[*codec.UnknownError](err); !ok {
			t.Errorf("%s: got %v", js, err)
		}
	}
}

func TestGarbage(t *testing.T) {
	c := codec.Must[forge.Event](&forgev1.Event{})
	good, err := c.Marshal(&forge.Event{ID: "e", At: time.Unix(1, 2), Message: &forge.Edit{}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"bytes":                "\xff\xff\xff",
		"cut":                  string(good[:len(good)-1]),
		"unknown, then cut":    "\xf8\x3f\x01\x0a\x05a",
		"not UTF-8":            "\x0a\x01\xff",
		"group":                "\x0b",
		"a year beyond all":    "\x1a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
		"two alternatives":     string(good) + "\x3a\x00",
		"twice the same":       string(good) + "\x32\x00",
		"a part that is cut":   "\x12\x05\x0a\x7f",
		"a number of 11 bytes": "\x12\x0b\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
	} {
		_, err := c.Unmarshal([]byte(data))
		if _, ok := errors.AsType[*codec.GarbageError](err); !ok {
			t.Errorf("%s: got %v, want a GarbageError", name, err)
		}
	}
	for _, js := range []string{"", "[]", `{"id": 1}`, `{"id": "x"`, `{"edit": {}, "cancel": {}}`} {
		_, err := c.ParseJSON([]byte(js))
		if _, ok := errors.AsType[*codec.GarbageError](err); !ok {
			t.Errorf("%s: got %v, want a GarbageError", js, err)
		}
	}
}

// TestPresence checks what is set and what is not.
func TestPresence(t *testing.T) {
	c := codec.Must[forge.Event](&forgev1.Event{})
	for _, ev := range []forge.Event{
		{},
		{Message: &forge.Edit{}},
		{Message: &forge.Edit{Title: new("")}},
		{Message: &forge.Edit{Risk: new(forge.Risk(""))}},
		{At: time.Unix(0, 0).UTC()},
	} {
		data, err := c.Marshal(&ev)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Unmarshal(data); err != nil || !reflect.DeepEqual(got, ev) {
			t.Errorf("sent %+v, received %+v, %v", ev, got, err)
		}
	}
}

func TestMarshalRefuses(t *testing.T) {
	c := codec.Must[forge.Event](&forgev1.Event{})
	for want, ev := range map[string]forge.Event{
		`submit.intent.risk: "huge" is no Risk`:           {Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Risk: "huge"}}}},
		"answer.index: 4294967296 does not fit":           {Message: &forge.Answer{Index: 1 << 32}},
		"after 9999-12-31":                                {At: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)},
		`result.reflection.proposals.1.source: "x" is no`: {Message: &forge.Result{Output: &forge.Reflection{Proposals: []forge.Intent{{}, {Source: "x"}}}}},
	} {
		if _, err := c.Marshal(&ev); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestInvalidText checks that what an agent printed never makes a result
// unsendable.
func TestInvalidText(t *testing.T) {
	c := codec.Must[forge.Intent](&forgev1.Intent{})
	data, err := c.Marshal(&forge.Intent{Settings: forge.Settings{
		Body: "caf\xc3", Attributes: forge.Attributes{Labels: []string{"\xff"}}, With: map[string]string{"a\xff": "\xff"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Unmarshal(data)
	if err != nil || got.Body != "caf\uFFFD" || got.Labels[0] != "\uFFFD" || got.With["a\uFFFD"] != "\uFFFD" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUnpacked(t *testing.T) {
	c := codec.Must[forge.History](&forgev1.History{})
	got, err := c.Unmarshal([]byte("\x38\x01\x38\x04\x3a\x02\x02\x06"))
	want := []forge.Step{forge.StepAnalyze, forge.StepReview, forge.StepImplement, forge.StepReflect}
	if err != nil || !slices.Equal(got.Flow, want) {
		t.Errorf("got %v, %v, want %v", got.Flow, err, want)
	}
}

// TestPlanRefuses checks that both sides have to agree.
func TestPlanRefuses(t *testing.T) {
	for want, err := range map[string]error{
		"message Key has no field region":       planError(codec.New[struct{ Region string }](&forgev1.Key{})),
		"has 1 fields, message Key has 2":       planError(codec.New[struct{ Project string }](&forgev1.Key{})),
		"no rule for int as string":             planError(codec.New[struct{ Project, Intent int }](&forgev1.Key{})),
		"no rule for int64 as int32":            planError(codec.New[struct{ Index int64 }](&forgev1.Answer{})),
		"must be a google.protobuf.Timestamp":   planError(codec.New[struct{ To time.Time }](&forgev1.Timer{})),
		"string is not repeated":                planError(codec.New[struct{ Tasks string }](&forgev1.Analysis{})),
		"only maps from strings to strings are": planError(codec.New[struct{ With map[string]int }](&forgev1.Intent{})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func planError[T any](_ *codec.Codec[T], err error) error { return err }
