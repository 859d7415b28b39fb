package document

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/guide-local.md, and the list of docs/guide-systems.md, anew")

// fill sets a field to a value that is not zero.
func fill(t *testing.T, f *Field, i *forge.Intent) {
	t.Helper()
	switch p := f.Of(i).(type) {
	case *string:
		*p = "x"
	case *int:
		*p = 2
	case *float64:
		*p = 1.5
	case *[]string:
		*p = []string{"a", "b"}
	case *[]forge.IntentID:
		*p = []forge.IntentID{"a"}
	case *map[string]string:
		*p = map[string]string{"A": "b"}
	case **forge.GoalOptions:
		*p = &forge.GoalOptions{Model: "m"}
	default:
		t.Fatalf("%s: no reader knows %T", f.Name, p)
	}
}

// TestEveryFieldIsInEveryDocument sets one field after the other, and expects it in the
// intent's file and, if drafts have it, back out of a draft.
func TestEveryFieldIsInEveryDocument(t *testing.T) {
	for _, f := range Fields() {
		var v forge.View
		fill(t, &f, &v.Intent)
		file := IntentOf(&v)
		shown := slices.ContainsFunc(file.Values(), func(v Value) bool { return v.Name == f.Name && !reflect.ValueOf(v.Value).IsZero() })
		if !shown {
			t.Errorf("%s is set and the intent's file does not show it", f.Name)
		}
		if f.Guide == "" {
			continue
		}
		i := &v.Intent
		d := Draft{
			Title: i.Title, Type: i.Type, Risk: string(i.Risk), Criteria: CriteriaOf(i.Criteria, i.Checks), Goal: GoalOptionsOf(i.Goal),
			DependsOn: idTexts(i.DependsOn), Settings: SettingsOf(i),
		}
		if got := d.Intent(); !reflect.DeepEqual(got, v.Intent) {
			t.Errorf("a draft with %s makes %+v", f.Name, got)
		}
		if key := func(v Value) bool { return v.Name == f.Name }; !slices.ContainsFunc(valuesOf(reflect.ValueOf(d)), key) {
			t.Errorf("a draft has no key %s", f.Name)
		}
	}
}

// TestDraftHasNoOtherKeys checks that the table knows every key of a draft.
func TestDraftHasNoOtherKeys(t *testing.T) {
	for _, v := range valuesOf(reflect.ValueOf(Draft{})) {
		if !slices.ContainsFunc(Fields(), func(f Field) bool { return f.Name == v.Name && f.Guide != "" }) {
			t.Errorf("drafts have %s, and Fields says nothing about it", v.Name)
		}
	}
}

// TestTexts checks that exactly the fields that can be edited are compared as texts.
func TestTexts(t *testing.T) {
	texts := (&Intent{}).Texts()
	for _, f := range Fields() {
		if _, ok := texts[f.Name]; ok != (f.Edit != nil) {
			t.Errorf("%s: an edit sets it: %t, it is compared: %t", f.Name, f.Edit != nil, ok)
		}
	}
}

// guideTable returns the table of a draft's keys in Markdown, as the guide has it.
func guideTable() string {
	var b strings.Builder
	b.WriteString("| key | what | left out |\n|---|---|---|\n")
	for _, f := range fields {
		if f.Guide != "" {
			b.WriteString("| `" + f.Name + "` | " + f.Guide + " | " + f.Absent + " |\n")
		}
	}
	return b.String()
}

// TestGuideTable compares the table of the guide with that of the code; -rewrite writes it.
func TestGuideTable(t *testing.T) {
	const file, begin = "../docs/guide-local.md", "Front matter is optional. An unknown key is an error that names the line.\n\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ended := strings.Cut(rest, "\n\n")
	if !ok || !ended {
		t.Fatalf("%s has no table of front matter", file)
	}
	want := strings.TrimSuffix(guideTable(), "\n")
	if table == want {
		return
	}
	if !*rewrite {
		t.Fatalf("%s has\n%s\nwant\n%s\nrun go test ./document -rewrite", file, table, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+"\n\n"+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestSystemsGuide checks that the guide of systems describes every field that a system can
// set, and compares its list of what is known with that of the code; -rewrite writes that list.
func TestSystemsGuide(t *testing.T) {
	const file, begin, end = "../docs/guide-systems.md", "is not known; what is: ", ", id, project, origin"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| field | what | |\n")
	table, _, ok := strings.Cut(table, "\n\n")
	if !ok {
		t.Fatalf("%s has no table of fields", file)
	}
	var names []string
	for _, f := range FieldsBy(Systems) {
		names = append(names, f.Name)
		inRow := func(row string) bool {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			return strings.Contains(cell, "`"+f.Name+"`")
		}
		if !slices.ContainsFunc(strings.Split(table, "\n"), inRow) {
			t.Errorf("%s does not describe %s", file, f.Name)
		}
	}
	before, rest, found := strings.Cut(string(text), begin)
	list, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s does not say what is known", file)
	}
	want := strings.Join(names, ", ")
	if list == want {
		return
	}
	if !*rewrite {
		t.Fatalf("%s has\n%s\nwant\n%s\nrun go test ./document -rewrite", file, list, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
