package watch

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// The view names the key that settles what an intent waits for.
func TestKeyFor(t *testing.T) {
	for waiting, want := range map[forge.Waiting]string{
		"":                         "p pause",
		forge.WaitingApproval:      "a approve",
		forge.WaitingClarification: "e answer",
		forge.WaitingPaused:        "u resume",
		forge.WaitingFailed:        "t retry",
		forge.WaitingDirty:         "t retry",
		forge.WaitingBudget:        "t retry",
	} {
		if got := keyFor(&forge.Summary{Waiting: waiting}); got != want {
			t.Errorf("waiting %q: %q, want %q", waiting, got, want)
		}
	}
}
