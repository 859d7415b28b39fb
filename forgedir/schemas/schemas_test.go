package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/goals"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/records"
	"github.com/pfl-forge/pfl-forge/forgedir/schemas"
)

var rewrite = flag.Bool("rewrite", false, "write the schemas anew")

// schemaKinds are the kinds of files, and what reads or writes them.
var schemaKinds = []struct {
	name, title string
	doc         any
	byHand      bool // a person writes it: everything is optional, and null is as good as nothing
}{
	{"intent", ".forge/intents/<id>.yaml: an intent; title, body, type, risk, answers and status: approved may be edited", document.Intent{}, false},
	{"task", ".forge/work/<task>.yaml: a task of an intent", records.TaskDoc{}, false},
	{"review", ".forge/reviews/<task>-<attempt>.yaml: a verdict on one commit of a task", records.ReviewDoc{}, false},
	{"observations", ".forge/observations.yaml: what agents noticed", []records.ObservationDoc{}, false},
	{"history", ".forge/knowledge/history/<intent>-<run>.yaml: a finished run of an intent", records.HistoryDoc{}, false},
	{"state", ".forge/state.yaml: every intent and its tasks at a glance", records.StateDoc{}, false},
	{"goal-history", "a line of .e8/history.jsonl: an iteration of a goal, summed up", goals.HistoryLine{}, false},
	{"goal-knowledge", "a line of .e8/knowledge.jsonl: something that a goal found out", goals.KnowledgeLine{}, false},
	{"problems", ".forge/problems.json: what is wrong with files that a person wrote", []person.Problem{}, false},
	{"draft", ".forge/intent-drafts/<id>.md: the front matter of a draft", document.Draft{}, true},
	{"pfl-forge", "pfl-forge.yaml: what pfl-forge does in this repository", config.Project{}, true},
}

// The schemas are made of the types that read and write the files: -rewrite.
func TestSchemasAreThoseOfTheTypes(t *testing.T) {
	g := newSchemaMaker(t)
	var names []string
	for _, kind := range schemaKinds {
		name := kind.name + ".schema.json"
		names = append(names, name)
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(g.file(kind.title, reflect.TypeOf(kind.doc), kind.byHand)); err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(committed), b.String()); diff != "" {
			t.Errorf("%s is not that of its type; run go test ./forgedir/schemas -rewrite (-committed +type):\n%s", name, diff)
		}
	}
	entries, err := schemas.Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, have); diff != "" && !*rewrite {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
}

// Everything that a file may hold is named, as the program refuses what is not.
func TestSchemasAreClosed(t *testing.T) {
	for _, kind := range schemaKinds {
		data, err := schemas.Files.ReadFile(kind.name + ".schema.json")
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		closed(t, kind.name, schema)
	}
}

func closed(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	props, _ := schema["properties"].(map[string]any)
	more := schema["additionalProperties"]
	if props != nil && more != false {
		t.Errorf("%s takes any key", at)
	}
	for name, sub := range props {
		closed(t, at+"."+name, sub.(map[string]any))
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if sub, ok := schema[key].(map[string]any); ok {
			closed(t, at+"[]", sub)
		}
	}
	if kind := schema["type"]; kind == "array" && schema["items"] == nil || kind == "object" && more == nil {
		t.Errorf("%s takes anything", at)
	}
}
