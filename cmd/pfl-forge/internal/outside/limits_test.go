package outside

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// TestLimitsOutliveARestart: the gateway that goes on after another one holds
// the limit that the other one has used up, and our comment says so.
func TestLimitsOutliveARestart(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	w.rules = `rules: [{name: few, when: {label: forge, permission: write}, do: go, project: shop, risk: low, limit: {per: author, count: 1}}]`
	stop := w.watch(50 * time.Millisecond)
	first := w.open()
	w.until(first, "of project `shop`")
	stop()
	w.watch(50 * time.Millisecond)
	w.until(w.open(), "the limit of 1 a day for each author is reached")
	w.until(first, "of project `shop`")
	if n := len(w.intents()); n != 1 {
		t.Errorf("%d were let in, want 1", n)
	}
}
