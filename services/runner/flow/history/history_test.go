package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

var start = time.Unix(100, 0).UTC()

// begun returns the state of an intent whose run began at start.
func begun() State { return State{Started: start} }

// result returns a result of a step with what it cost.
func result(step forge.Step, number int, cost float64) *forge.Result {
	return &forge.Result{
		Attempt: forge.Attempt{Step: step, Task: "fix-001", Number: number},
		Usage:   forge.Usage{CostUSD: cost}, Duration: time.Second,
	}
}

// The record of a run has its steps in order, each step once in its flow, and only the
// observations that were made in it.
func TestRun(t *testing.T) {
	s := begun()
	s.Observe(start.Add(-time.Hour), "fix", []forge.Observation{{Content: "of the run before"}})
	s.Step(start, result(forge.StepImplement, 1, 1))
	s.Step(start, result(forge.StepReview, 1, 2))
	s.Correct("rejected")
	s.Adjust(start, "rework", "fix-001", "rejected: no test")
	second := result(forge.StepImplement, 2, 4)
	second.Executor = forge.ExecutorPods
	s.Step(start, second)
	s.Merged(start, "fix-001", 1, "merged", forge.ExecutorNone)
	s.Observe(start, "fix", []forge.Observation{{Content: "slow tests"}})
	h := s.End(start.Add(time.Minute), Ended{Intent: &forge.Intent{ID: "fix", Status: forge.StatusDone}, Run: 1, Reason: "unused"})

	var steps []string
	for _, r := range h.StepResults {
		steps = append(steps, fmt.Sprintf("%s %d %s %s", r.Step, r.Attempt, r.Outcome, r.Executor))
	}
	want := []string{"implement 1 ok ", "review 1 rejected ", "implement 2 ok pods", "merge 1 merged none"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
	if want := []forge.Step{forge.StepImplement, forge.StepReview, forge.StepMerge}; !slices.Equal(h.Flow, want) {
		t.Errorf("the flow is %v, want %v", h.Flow, want)
	}
	if h.Outcome != forge.OutcomeSuccess || h.FailureReason != "" {
		t.Errorf("outcome %q, %q", h.Outcome, h.FailureReason)
	}
	if len(h.Observations) != 1 || h.Observations[0].ID != "fix/2" {
		t.Errorf("observations %+v, want fix/2 alone", h.Observations)
	}
	if s.Usage.CostUSD != 7 {
		t.Errorf("all steps cost %v, want 7", s.Usage.CostUSD)
	}
}

// How a run ended follows from the intent's status, and a conflict for a person is no
// plain failure.
func TestOutcome(t *testing.T) {
	for _, test := range []struct {
		status    forge.Status
		escalated bool
		want      forge.Outcome
		reason    string
	}{
		{forge.StatusDone, false, forge.OutcomeSuccess, ""},
		{forge.StatusDone, true, forge.OutcomeSuccess, ""},
		{forge.StatusError, false, forge.OutcomeFailed, "why"},
		{forge.StatusCancelled, false, forge.OutcomeFailed, "why"},
		{forge.StatusBlocked, true, forge.OutcomeEscalated, "why"},
	} {
		s := begun()
		ended := Ended{Intent: &forge.Intent{Status: test.status}, Run: 1, Escalated: test.escalated, Reason: "why"}
		s.End(start, Ended{Intent: &forge.Intent{Status: forge.StatusExecuting}, Run: 1, Reason: "another"})
		s.EndedOtherwise(ended)
		if h := s.Runs[0]; h.Outcome != test.want || h.FailureReason != test.reason {
			t.Errorf("%s, escalated %t: %s, %q; want %s, %q", test.status, test.escalated, h.Outcome, h.FailureReason, test.want, test.reason)
		}
	}
}

// What a late result cost counts once: in the present run, or in the record of a run that
// is closed; a view of the state before does not change.
func TestLate(t *testing.T) {
	s := begun()
	s.Late(start, result(forge.StepImplement, 1, 1), false)
	if len(s.Steps) != 1 || s.Steps[0].Outcome != Unwanted {
		t.Errorf("steps %+v", s.Steps)
	}
	s.End(start, Ended{Intent: &forge.Intent{Status: forge.StatusError}, Run: 1})
	view := s.Runs
	s.Late(start, result(forge.StepImplement, 2, 2), true)
	if n := len(s.Runs[0].StepResults); n != 2 {
		t.Errorf("the closed run has %d steps, want 2", n)
	}
	if n := len(view[0].StepResults); n != 1 {
		t.Errorf("the view of the state before has %d steps now, want 1", n)
	}
	if s.Usage.CostUSD != 3 {
		t.Errorf("cost %v, want 3", s.Usage.CostUSD)
	}
}

// An agent that floods the record reaches the bounds, and no further.
func TestObserveBounds(t *testing.T) {
	s := begun()
	flood := make([]forge.Observation, maxObserved+1)
	for i := range flood {
		flood[i] = forge.Observation{
			ID: "chosen by the agent", IntentID: "another", Processed: true,
			Content: strings.Repeat("é", maxContent), Evidence: make([]forge.Evidence, maxEvidence+1),
		}
	}
	s.Observe(start, "fix", flood)
	if len(s.Observations) != maxObserved {
		t.Fatalf("%d observations, want %d", len(s.Observations), maxObserved)
	}
	for i, o := range s.Observations {
		if o.ID != fmt.Sprintf("fix/%d", i+1) || o.IntentID != "fix" || o.Processed {
			t.Errorf("%d: %q of %q, processed %t", i, o.ID, o.IntentID, o.Processed)
		}
		if len(o.Content) > maxContent || !utf8.ValidString(o.Content) || len(o.Evidence) != maxEvidence {
			t.Errorf("%d: %d bytes, %d pieces of evidence", i, len(o.Content), len(o.Evidence))
		}
	}
}

// A reflection is added to the run that it was about, once, and marks what it read; one
// about a run that has not ended changes nothing.
func TestReflected(t *testing.T) {
	s := begun()
	s.Observe(start, "fix", []forge.Observation{{Content: "a"}, {Content: "b"}})
	step := forge.StepRecord{Step: forge.StepReflect, Attempt: 1, Usage: forge.Usage{CostUSD: 5}}
	reflected := &forge.RunReflected{Run: 1, Read: []string{"fix/1"}, Step: step}
	reflected.Proposed = []forge.Proposal{{ID: "next", Title: "Do more"}}

	if d, _ := s.Reflected(start, "fix", &forge.RunReflected{Run: 1, Step: reflected.Step}); d != forge.Ignored {
		t.Errorf("before the run ended: %q", d)
	}
	s.End(start, Ended{Intent: &forge.Intent{ID: "fix", Status: forge.StatusDone}, Run: 1})
	if d, err := s.Reflected(start, "fix", reflected); d != forge.Applied || err != nil {
		t.Errorf("%q, %v", d, err)
	}
	if d, _ := s.Reflected(start, "fix", reflected); d != forge.Ignored {
		t.Errorf("the second time: %q", d)
	}
	h := s.Runs[0]
	if len(h.Adjustments) != 1 || h.Adjustments[0].Detail != "next: Do more" || h.Flow[len(h.Flow)-1] != forge.StepReflect {
		t.Errorf("%+v", h)
	}
	if !h.Observations[0].Processed || h.Observations[1].Processed || !s.Observations[0].Processed {
		t.Error("not exactly what was read is marked")
	}
	if s.Usage.CostUSD != 5 {
		t.Errorf("cost %v, want 5", s.Usage.CostUSD)
	}
}
