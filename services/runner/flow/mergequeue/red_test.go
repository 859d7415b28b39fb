package mergequeue

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// While the base branch is red only what passed there is merged, whatever is ahead of it.
func TestRedBase(t *testing.T) {
	var out outbox.Messages
	s := State{Red: "red"}
	for task, base := range map[forge.TaskID]string{"a-001": "green", "b-001": "red"} {
		if _, err := s.Merge(&out, task.Intent(), &forge.QueueMerge{Task: task, Number: 1, Base: base}); err != nil {
			t.Fatal(err)
		}
	}
	if m := s.StartNext(&out, false); m == nil || m.Task != "b-001" {
		t.Fatalf("%+v is merged first", m)
	}
	s.Current = nil
	if m := s.StartNext(&out, false); m != nil {
		t.Errorf("%s is merged on a red base branch", m.Task)
	}
	s.Red = ""
	if m := s.StartNext(&out, false); m == nil || m.Task != "a-001" {
		t.Errorf("%+v is merged when the base branch passes", m)
	}
}

// What was verified nowhere may be what mends the base branch, wherever it was
// made: it is not held back by the very fact that it may end.
func TestUnverifiedOnARedBase(t *testing.T) {
	var out outbox.Messages
	s := State{Red: "red"}
	if _, err := s.Merge(&out, "a", &forge.QueueMerge{Task: "a-001", Number: 1, Base: "green", Unverified: true}); err != nil {
		t.Fatal(err)
	}
	if m := s.StartNext(&out, false); m == nil || m.Task != "a-001" {
		t.Errorf("%+v is merged on a red base branch", m)
	}
}
