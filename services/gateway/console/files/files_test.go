package files

import (
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
)

// TestOrder: what the plan does not name comes first and is never folded, whatever its name and size; what programs make comes last, and is folded.
func TestOrder(t *testing.T) {
	no, yes := false, true
	list := []document.DiffFile{
		{Path: "api.pb.go", Planned: &yes}, {Path: "b.go", Planned: &yes}, {Path: "large.go", Planned: &yes, Added: 300, Deleted: 101},
		{Path: "web/node_modules/x.js", Planned: &no, Added: 5000}, {Path: "go.sum", Planned: &yes}, {Path: "recipe.go"},
	}
	slices.SortStableFunc(list, Order)
	got := ""
	for _, f := range list {
		got += f.Path
		if Folded(f) {
			got += "(folded)"
		}
		got += " "
	}
	if want := "web/node_modules/x.js b.go large.go(folded) recipe.go api.pb.go(folded) go.sum(folded) "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
