package leftovers

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// A name belongs to one intent alone, whatever intents are called.
func TestBelongs(t *testing.T) {
	for _, c := range []struct {
		name   string
		intent forge.IntentID
		want   bool
	}{
		{"fix-001", "fix", true},
		{"fix-1234", "fix", true},
		{"fix-001-verify", "fix", true},
		{"fix-001-review", "fix", true},
		{"fix-analyze", "fix", true},
		{"fix-analyze-1.ndjson", "fix", true},
		{"fix-001-implement-12.ndjson", "fix", true},
		{"fix-001-execute-12.ndjson", "fix", true},
		{"fix-001-judge", "fix", true},
		{"fix-intake", "fix", true},
		{"fix-judge", "fix", false},
		{"fix", "fix", false},
		{"fix-it", "fix", false},
		{"fix-it-001", "fix", false},
		{"fix-01", "fix", false},
		{"fix-analyze-001", "fix", false}, // a task of the intent fix-analyze
		{"fix-analyze-001", "fix-analyze", true},
		{"fix-001-analyze", "fix", false}, // the analysis of the intent fix-001
		{"fix-001-analyze", "fix-001", true},
		{"fix-001-review", "fix-001", false},
		{"fix-001-review-1.ndjson", "fix-001", false},
		{"fix-001-analyze-1.ndjson", "fix", false},
		{"fix-001-001", "fix", false},
		{"fix-001-001", "fix-001", true},
		{"fix-001.yaml", "fix", false},
		{"prefix-001", "fix", false},
	} {
		if got := belongs(c.name, c.intent); got != c.want {
			t.Errorf("%s of %s: %v, want %v", c.name, c.intent, got, c.want)
		}
	}
}

// What can be retried is not over, and neither is what an agent works on.
func TestOver(t *testing.T) {
	for status, want := range map[forge.Status]bool{
		forge.StatusProposed: false, forge.StatusApproved: false, forge.StatusExecuting: false, forge.StatusBlocked: false,
		forge.StatusError: false, forge.StatusDone: true, forge.StatusRejected: true, forge.StatusCancelled: true,
	} {
		if got := Over(&forge.Summary{Status: status}); got != want {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
		if Over(&forge.Summary{Status: status, RunSummary: forge.RunSummary{Open: []forge.Attempt{{Step: forge.StepReflect}}}}) {
			t.Errorf("%s: over, although an attempt is open", status)
		}
	}
}
