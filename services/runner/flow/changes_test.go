package flow_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// TestChanges has the rules ask for each change of a version in one place, where
// it can be found when the branch of the versions before is to be deleted.
func TestChanges(t *testing.T) {
	var sources strings.Builder
	err := fs.WalkDir(flow.Sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := flow.Sources.ReadFile(path)
		sources.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rules.Changes() {
		if n := strings.Count(sources.String(), "Has(rules."+c.Name+")"); n != 1 {
			t.Errorf("the rules ask for %s in %d places; want one", c.Name, n)
		}
	}
}
