package pause

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Pauses of a project are numbered, so that they may arrive in any order.
func TestProjectsPauses(t *testing.T) {
	var s State
	s.Pause(&forge.Pause{Number: 1})
	if !s.Holds("a-001") || s.Why() != forge.ProjectPaused {
		t.Error("the project's pause holds nothing")
	}
	s.Resume(&forge.Resume{Number: 2})
	if s.Whole() || !s.Known(2) {
		t.Error("the end of pause 2 is not the end of pause 1")
	}
	s.Admitted(3, 2)
	if !s.Whole() {
		t.Error("an intent that is admitted in a pause is not paused")
	}
}

// The end of an intent's pause is the end of the pauses of its tasks.
func TestTasksPauses(t *testing.T) {
	var s State
	s.Pause(&forge.Pause{Task: "a-001", Reason: "wait"})
	if !s.Holds("a-001") || s.Holds("a-002") || s.Whole() || s.Why() != "wait" {
		t.Errorf("it is %+v", s)
	}
	s.Pause(&forge.Pause{})
	s.Resume(&forge.Resume{})
	if s.Holds("a-001") || s.Holds("") {
		t.Errorf("it is %+v", s)
	}
}
