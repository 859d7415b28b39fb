package mergequeue_test

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// The intent is told what the verify commands of its merge ran in, whatever came of it, also
// by a worker that was given up.
func TestMergeTellsExecutor(t *testing.T) {
	for name, output := range map[string]forge.Output{
		"merged": &forge.MergeResult{Outcome: forge.MergeDone}, "failed": &forge.Failure{Reason: forge.FailConfig},
	} {
		for _, late := range []bool{false, true} {
			if late && name == "failed" {
				continue // which says nothing any more
			}
			var s mergequeue.State
			var out outbox.Messages
			if _, err := s.Merge(&out, "a", &forge.QueueMerge{Task: "a-001", Number: 1}); err != nil {
				t.Fatal(err)
			}
			attempt := s.StartNext(&out, false).Attempt()
			if late {
				attempt.Claim++
			}
			r := &forge.Result{To: forge.Key{Intent: "a"}, Attempt: attempt, Executor: forge.ExecutorPods, Output: output}
			if _, _, err := s.Result(&out, rules.Newest, r, time.Unix(0, 0)); err != nil {
				t.Fatal(err)
			}
			if len(out) != 1 || forge.As[*forge.MergeEnded](out[0].Message).Executor != forge.ExecutorPods {
				t.Errorf("%s, late %v: told %+v", name, late, out)
			}
		}
	}
}
