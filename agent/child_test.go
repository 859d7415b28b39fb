package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

func TestPartsOfARequest(t *testing.T) {
	got, _, err := agent.ParseAnalysis([]byte(`{"type": "feature", "risk": "med", "tasks": [], "children": [
		{"name": "api", "title": " An API ", "body": " All of it.\nEnd. ", "type": "feature", "risk": "high"},
		{"name": "page", "title": "A page\u202e", "body": "b", "depends_on": ["api", "api"]}]}`))
	want := forge.Analysis{Type: "feature", Risk: forge.RiskMed, Children: []forge.ChildPlan{
		{Name: "api", Title: "An API", Body: "All of it.\nEnd.", Type: "feature", Risk: forge.RiskHigh},
		{Name: "page", Title: "A page<U+202E>", Body: "b", DependsOn: []string{"api", "api"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	got, _, err = agent.ParseAnalysis([]byte(`{"tasks": [], "insufficient": " the generator is nowhere "}`))
	if diff := cmp.Diff(forge.Analysis{Insufficient: "the generator is nowhere"}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestArchitectLooksNoDeeper(t *testing.T) {
	spec := agent.Spec(agent.RoleArchitect)
	err := spec.Check([]byte(`{"tasks": [], "insufficient": "x"}`))
	if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, "nobody looks deeper") {
		t.Errorf("got %v", err)
	}
	if err := spec.Check([]byte(`{"tasks": [], "nothing_to_do": "x"}`)); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(spec.Schema), "insufficient") || !strings.Contains(string(spec.Schema), "children") {
		t.Errorf("its schema is %s", spec.Schema)
	}
}

func TestPartsRefused(t *testing.T) {
	part := func(name, more string) string {
		return fmt.Sprintf(`{"name": %q, "title": "t", "body": "b"%s}`, name, more)
	}
	parts := func(list ...string) string { return `"children": [` + strings.Join(list, ", ") + `]` }
	var many []string
	for i := range 31 {
		many = append(many, part(fmt.Sprintf("p%d", i), ""))
	}
	two := parts(part("a", ""), part("b", ""))
	for _, tt := range []struct{ in, want string }{
		{parts(part("a", "")), "which is the request again"},
		{parts(many...), "has 31 children; at most 30"},
		{parts(part("A", ""), part("b", "")), `children[0].name is "A"`},
		{parts(part(strings.Repeat("a", 41), ""), part("b", "")), "at most 40"},
		{parts(part("a", ""), part("a", "")), `two children are named "a"`},
		{parts(part("a", ""), part("b", `, "depends_on": ["c"]`)), `child "b" depends on "c", which is no child of this answer`},
		{parts(part("a", `, "depends_on": ["b"]`), part("b", `, "depends_on": ["a"]`)), "the depends_on of each child form a circle"},
		{parts(part("a", ""), part("b", `, "risk": "none"`)), `children[1].risk is "none"`},
		{parts(part("a", ""), part("b", `, "type": "Two Words"`)), `children[1].type is "Two Words"`},
		{parts(part("a", ""), `{"name": "b", "title": "one\ntwo", "body": "b"}`), "children[1].title holds a control character"},
		{parts(part("a", ""), `{"name": "b", "title": " ", "body": "b"}`), "children[1].title is empty"},
		{parts(part("a", ""), `{"name": "b", "title": "t", "body": ""}`), "children[1].body is empty"},
		{parts(part("a", ""), fmt.Sprintf(`{"name": "b", "title": %q, "body": "b"}`, strings.Repeat("x", 501))), "at most 500 are allowed"},
		{parts(part("a", ""), fmt.Sprintf(`{"name": "b", "title": "t", "body": %q}`, strings.Repeat("x", 64<<10+1))), "at most 65536 are allowed"},
		{two + `, "tasks": [{"name": "a", "title": "x"}]`, "tasks and children"},
		{two + `, "clarifications": [{"question": "x"}]`, "children beside clarifications"},
		{two + `, "nothing_to_do": "x"`, "children beside clarifications or nothing_to_do"},
		{two + `, "insufficient": "x"`, "cannot be planned yet"},
		{`"insufficient": "x", "tasks": [{"name": "a", "title": "x"}]`, "cannot be planned yet"},
		{`"insufficient": "x", "clarifications": [{"question": "x"}]`, "cannot be planned yet"},
	} {
		_, _, err := agent.ParseAnalysis([]byte("{" + tt.in + "}"))
		if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Reason != forge.FailInvalidOutput || !strings.Contains(f.Message, tt.want) {
			t.Errorf("%.120s:\n got %v\nwant ...%s", tt.in, err, tt.want)
		}
	}
}

func TestSchemaWithout(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal(agent.SchemaWithout([]byte(`{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}`), "b", "c"), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{}}, "required": []any{"a"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
