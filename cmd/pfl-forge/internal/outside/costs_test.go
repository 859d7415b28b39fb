package outside

import (
	"encoding/json"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestCostsAreTold asks by HTTP what agents used, by everything that it can be
// grouped by, and has each answer add up to what the intent says of itself.
// Another project's reader gets nothing, and what is not understood is named.
func TestCostsAreTold(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, _ := w.done("costs")
	var whole document.Detail
	got := w.request("viewer", http.MethodGet, path, "")
	got.wants(t, "the intent", http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &whole); err != nil {
		t.Fatal(err)
	}
	const address = "/api/v1/projects/shop/costs"
	keys := map[document.CostGroup]string{
		document.CostsByIntent: string(whole.Intent), document.CostsByStep: "review", document.CostsByAgent: "claude", document.CostsByModel: "small",
		document.CostsByDay: time.Now().UTC().Format(time.DateOnly), document.CostsByProject: "shop",
	}
	for _, by := range append(document.CostGroups(), "") {
		got := w.request("viewer", http.MethodGet, address+"?by="+string(by), "")
		got.wants(t, string(by), http.StatusOK)
		var c document.Costs
		if err := json.Unmarshal([]byte(got.text), &c); err != nil {
			t.Fatal(err)
		}
		sum, found := 0.0, keys[by] == ""
		for _, row := range c.Rows {
			sum += row.CostUSD
			found = found || row.Key == keys[by]
		}
		if whole.CostUSD == 0 || math.Abs(sum-whole.CostUSD) > 1e-9 || c.Total.CostUSD != sum || !found {
			t.Errorf("by %q: %g of %g, %+v", by, sum, whole.CostUSD, c)
		}
	}
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.request("viewer", http.MethodGet, address+"?since="+later, "").wants(t, "later", http.StatusOK, `"rows":[]`)
	for query, says := range map[string]string{
		"?by=weather":                         `"by"`,
		"?since=yesterday":                    `"since"`,
		"?until=tomorrow":                     `"until"`,
		"?since=" + later + "&until=" + later: `"until"`,
		"?of=all":                             `"of"`,
	} {
		w.request("viewer", http.MethodGet, address+query, "").wants(t, query, http.StatusBadRequest, says)
	}
	w.request("banker", http.MethodGet, address, "").wants(t, "another project", http.StatusForbidden)
}
