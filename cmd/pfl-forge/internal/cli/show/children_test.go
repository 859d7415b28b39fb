package show

import (
	"bytes"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// TestPlannedParts: who approves that an intent is taken apart sees what the parts are
// to be.
func TestPlannedParts(t *testing.T) {
	v := &forge.View{
		Summary: forge.Summary{Children: []forge.ChildSummary{{ID: "shop-price", Title: "Price"}, {ID: "shop-total", Title: "Total", Status: forge.StatusDone}}},
		Children: []forge.Intent{
			{
				ID:       "shop-price",
				Settings: forge.Settings{Title: "Price", Body: "What it\x1b[31m costs.", Risk: forge.RiskMed, DependsOn: []forge.IntentID{"shop-list"}},
			},
			{ID: "shop-total", Settings: forge.Settings{Title: "Total", Body: "All of it."}},
		},
	}
	d := intentOf(v)
	var out bytes.Buffer
	a := &kit.App{Out: &out}
	for i := range d.Children {
		document.PrintChild(a, &d.Children[i])
	}
	want := "  shop-price  planned  Price\n      What it costs.\n      after shop-list\n      risk med\n  shop-total  done  Total\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
