package mergequeue

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// A trial whose verify failed once had stopped by the first version of the
// rules, and is made once more by those since.
func TestDoubtHasAVersion(t *testing.T) {
	for by, want := range map[rules.Version]CarState{rules.First: Stopped, rules.Newest: Trying} {
		var out outbox.Messages
		var s State
		for _, task := range []forge.TaskID{"a-001", "b-001"} {
			change := &forge.QueueMerge{Task: task, Number: 1, PatchID: "patch", Parallel: 2}
			if _, err := s.Merge(&out, task.Intent(), change); err != nil {
				t.Fatal(err)
			}
			s.StartNext(&out, false)
		}
		tried, _ := s.Couple(rules.Newest, false)
		if len(tried) != 1 {
			t.Fatalf("%d trials begin", len(tried))
		}
		failed := &forge.Rebase{PatchID: "patch", Verify: &forge.VerifyReport{}}
		r := &forge.Result{
			To: forge.Key{Intent: "b"}, Attempt: tried[0].Attempt(),
			Output: &forge.MergeResult{Outcome: forge.MergeTried, Candidate: failed},
		}
		if _, _, err := s.Result(&out, by, r, time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		s.Couple(rules.Newest, false)
		if got := s.Queued[0].Car.State; got != want {
			t.Errorf("by version %d of the rules the change is %q, want %q", by, got, want)
		}
	}
}
