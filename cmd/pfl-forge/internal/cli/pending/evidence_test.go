package pending

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

// What counts is the last change of a task: a new implementation has not been verified.
func TestEvidence(t *testing.T) {
	of := func(task forge.TaskID, r forge.Result) forge.Event {
		r.Attempt.Task = task
		return forge.Event{Message: &r}
	}
	implemented := of("a-001", forge.Result{Output: &forge.Implementation{Files: []string{"one.go"}}})
	failed := &forge.VerifyReport{Command: "make test", Output: "no"}
	rebased := of("a-001", forge.Result{Output: &forge.Rebase{Files: []string{"one.go", "two.go"}, Verify: failed}})
	left := of("a-001", forge.Result{Output: &forge.Rebase{Files: []string{"one.go"}, Unverified: true}})
	asked := of("a-001", forge.Result{Output: &forge.Rebase{Verify: &forge.VerifyReport{Passed: true, Checks: []forge.CheckRun{{ID: "c0-lint"}}}}})
	conflict := of("a-001", forge.Result{Output: &forge.Rebase{Conflicts: []string{"one.go"}}})
	merged := forge.Event{Message: &forge.MergeEnded{Task: "a-002", Result: &forge.MergeResult{Candidate: &forge.Rebase{Files: []string{"x"}, Verify: failed}}}}
	for name, c := range map[string]struct {
		events []forge.Event
		want   map[forge.TaskID]*evidence
	}{
		"nothing":     {nil, map[forge.TaskID]*evidence{}},
		"implemented": {[]forge.Event{implemented}, map[forge.TaskID]*evidence{"a-001": {Files: []string{"one.go"}}}},
		"verified":    {[]forge.Event{implemented, rebased}, map[forge.TaskID]*evidence{"a-001": {Files: []string{"one.go", "two.go"}, Verify: failed}}},
		"again":       {[]forge.Event{implemented, rebased, implemented}, map[forge.TaskID]*evidence{"a-001": {Files: []string{"one.go"}}}},
		"asked":       {[]forge.Event{implemented, left, asked}, map[forge.TaskID]*evidence{"a-001": {Files: []string{"one.go"}, Unverified: true}}},
		"conflict":    {[]forge.Event{implemented, conflict}, map[forge.TaskID]*evidence{"a-001": {Files: []string{"one.go"}}}},
		"merge":       {[]forge.Event{merged}, map[forge.TaskID]*evidence{"a-002": {Files: []string{"x"}, Verify: failed}}},
	} {
		var records []forge.Record
		for _, ev := range c.events {
			records = append(records, forge.Record{Events: []forge.Event{ev}})
		}
		if diff := cmp.Diff(c.want, evidenceOf(records)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
