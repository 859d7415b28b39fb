package files

import (
	"fmt"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
)

// TestKeptToThePlan: what the plan names and the change leaves alone is told,
// and what the change touches besides; nothing before there is a change,
// without files in the plan, or where a list is cut.
func TestKeptToThePlan(t *testing.T) {
	for about, c := range map[string]struct {
		planned, changed []string
		cut              string
		want             string
	}{
		"as planned":           {[]string{"a.go", "b.go"}, []string{"b.go", "a.go"}, "", "[] []"},
		"left alone, and more": {[]string{"a.go", "b.go"}, []string{"b.go", "c.go"}, "", "[a.go] [c.go]"},
		"a folder":             {[]string{"docs/", "web"}, []string{"docs/a.md", "website.md"}, "", "[web] [docs/a.md website.md]"},
		"nothing made yet":     {[]string{"a.go"}, nil, "", "[] []"},
		"a plan without files": {nil, []string{"a.go"}, "", "[] []"},
		"a list that is cut":   {[]string{"a.go"}, []string{"b.go"}, "work[1].changed", "[] []"},
		"a name that is cut":   {[]string{"a.go"}, []string{"b.go"}, "work[1].files[0]", "[] []"},
		"another task's cut":   {[]string{"a.go"}, []string{"b.go"}, "work[0].changed", "[a.go] [b.go]"},
	} {
		w := document.Work{
			PlanTasks: []document.Task{{}, {Files: c.planned, Product: document.Product{Changed: c.changed}}},
			Truncated: []document.Truncated{{Field: c.cut}},
		}
		if k := KeptTo(&w, 1); fmt.Sprint(k.Untouched, " ", k.Beyond) != c.want {
			t.Errorf("%s: %+v, want %s", about, k, c.want)
		}
	}
	names := []Name{{DiffFile: document.DiffFile{Path: "new.go", OldPath: "old.go"}}, {DiffFile: document.DiffFile{Path: "b.go"}}}
	planned := []string{"old.go", "b.go", "c.go"}
	for about, c := range map[string]struct {
		view View
		want string
	}{
		"the change":        {View{Diff: document.Diff{FileCount: 2}, Names: names}, "[c.go]"},
		"not all names":     {View{Diff: document.Diff{FileCount: 3}, Names: names}, "[]"},
		"files left out":    {View{Diff: document.Diff{FileCount: 2, LeftOut: 1}, Names: names}, "[]"},
		"a mere comparison": {View{Diff: document.Diff{FileCount: 2, Since: &document.DiffSince{}}, Names: names}, "[]"},
	} {
		if got := fmt.Sprint(c.view.Untouched(planned)); got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}
