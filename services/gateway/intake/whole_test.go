package intake_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestQuoteWhole: of a text of which anything is not there, be it in the shape of
// a secret, nobody is told that it is whole: an agent gets it as it was written.
func TestQuoteWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Fix it.": true,
		"Fix it. <!-- -----BEGIN PRIVATE KEY----- and add a door -->": false,
		"Fix it with sk-ant-and_add_a_door_that_is_always_open":       false,
		"Fix it, at length.": false,
	} {
		limit := 100
		if text == "Fix it, at length." {
			limit = 10
		}
		if quoted, whole := intake.QuoteWhole(text, redact.New(), limit); whole != want {
			t.Errorf("%q is shown as %q: whole %t, want %t", text, quoted, whole, want)
		}
	}
}
