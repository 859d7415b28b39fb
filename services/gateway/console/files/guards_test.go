package files

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
)

// TestExpectedGuards: before the rules compare a change with the protected
// paths, the page says which of them its plan names, or it touches already.
func TestExpectedGuards(t *testing.T) {
	patterns := []string{"*.lock", "ci/", "package.json#scripts"}
	w := document.Work{PlanTasks: []document.Task{
		{Files: []string{"a.go", "ci/test.yml"}},
		{Files: []string{"yarn.lock", "ci/test.yml"}, Product: document.Product{Changed: []string{"package.json", "a.go"}}},
		{Files: []string{"1.lock", "2.lock", "3.lock", "4.lock", "5.lock", "6.lock"}},
		{Files: []string{"a.go"}},
		{},
	}}
	for about, c := range map[string]struct {
		task     int
		whole    bool
		patterns []string
		want     string
	}{
		"of the plan":             {0, false, patterns, "the plan names ci/test.yml"},
		"of the whole plan":       {3, true, patterns, "the plan names ci/test.yml, yarn.lock, 1.lock, 2.lock, 3.lock and 3 more"},
		"of the change":           {1, true, patterns, "it touches package.json"},
		"of many":                 {2, false, patterns, "the plan names 1.lock, 2.lock, 3.lock, 4.lock, 5.lock and 1 more"},
		"none":                    {3, false, patterns, "the plan names none"},
		"a plan without files":    {4, false, patterns, ""},
		"a policy without any":    {0, false, nil, ""},
		"a policy that is broken": {0, false, []string{"["}, "the plan names none"},
	} {
		got := ""
		if g := Expect(c.patterns, &w, &w.PlanTasks[c.task], c.whole); g != nil {
			got = g.Words()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", about, got, c.want)
		}
	}
}
