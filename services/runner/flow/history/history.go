// Package history keeps the record of an intent's runs: which steps ran and what
// they cost, which rules adjusted the flow, what agents observed, and, when a run
// has ended, what it came to.
//
// Lists only grow, or are replaced by a copy: views of an earlier state go on
// showing that state.
package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Unwanted is the outcome of a step whose result came too late to count.
const Unwanted = "unwanted"

// Bounds of the observations of one attempt.
const (
	// maxObserved bounds the observations of a run.
	maxObserved = 50
	// maxContent bounds the text of each, in bytes.
	maxContent = 2000
	// maxEvidence bounds the pieces of evidence of each.
	maxEvidence = 20
)

// MaxSent bounds the steps, the adjustments and the observations that the project gets of
// a run that ended.
const MaxSent = 100

// State is the record of an intent. Steps and Adjustments are those of the present
// run, the rest is of all runs.
type State struct {
	// Steps are those of the present run, in the order of their decisions.
	Steps []forge.StepRecord
	// Adjustments are the rules that changed the flow of the present run.
	Adjustments []forge.Adjustment
	// Observations are of all runs.
	Observations []forge.Observation
	// Observed counts the observations ever, and numbers their ids.
	Observed int
	// Runs are those that ended, oldest first.
	Runs []forge.History
	// Usage is the consumption of all runs, reflections included.
	Usage forge.Usage
	// Started is when the present run began.
	Started time.Time
}

// Adjust records that a rule changed the flow.
func (s *State) Adjust(now time.Time, name string, task forge.TaskID, detail string) {
	s.Adjustments = append(s.Adjustments, forge.Adjustment{Rule: name, TaskID: task, Detail: detail, At: now})
}

// Retry forgets the steps and adjustments of the run before.
func (s *State) Retry() { s.Steps, s.Adjustments = nil, nil }

// Step records a result and what it cost.
func (s *State) Step(now time.Time, r *forge.Result) {
	s.Usage = s.Usage.Add(r.Usage)
	s.Steps = append(s.Steps, stepRecord(now, r))
}

// Merged records the outcome of a merge. The project issued that step and has its
// costs.
func (s *State) Merged(now time.Time, task forge.TaskID, attempt int, outcome string, in forge.Executor) {
	s.Steps = append(s.Steps, forge.StepRecord{
		Step: forge.StepMerge, TaskID: task, Attempt: attempt, At: now, Outcome: outcome, Executor: in,
	})
}

// Correct replaces the outcome of the newest step.
func (s *State) Correct(outcome string) { s.Steps[len(s.Steps)-1].Outcome = outcome }

// Late records the costs of an attempt whose result is not needed any more. Once the
// run is closed it belongs to the record of that run.
func (s *State) Late(now time.Time, r *forge.Result, closed bool) {
	s.Usage = s.Usage.Add(r.Usage)
	rec := stepRecord(now, r)
	rec.Outcome = Unwanted
	if !closed || len(s.Runs) == 0 {
		s.Steps = append(s.Steps, rec)
		return
	}
	s.Runs = slices.Clone(s.Runs)
	h := &s.Runs[len(s.Runs)-1]
	h.StepResults = append(slices.Clip(h.StepResults), rec)
}

// stepRecord returns the record of a result. The outcome of one that did not
// fail is ok, until the rules correct it.
func stepRecord(now time.Time, r *forge.Result) forge.StepRecord {
	outcome := "ok"
	if f := r.Failure(); f != nil {
		outcome = string(f.Reason)
	}
	return forge.StepRecord{
		Step: r.Attempt.Step, TaskID: r.Attempt.Task, Attempt: r.Attempt.Number, Outcome: outcome,
		Duration: r.Duration, Session: r.Session, Agent: r.Agent, Model: r.Model, Executor: r.Executor, Usage: r.Usage, At: now,
	}
}

// Observe adds an agent's observations, under ids that reflections refer to.
func (s *State) Observe(now time.Time, intent forge.IntentID, list []forge.Observation) {
	for _, o := range list[:min(len(list), maxObserved)] {
		s.Observed++
		o.Content = strings.ToValidUTF8(rule.Shorten(o.Content, maxContent), "")
		o.Evidence = o.Evidence[:min(len(o.Evidence), maxEvidence)]
		o.ID = fmt.Sprintf("%s/%d", intent, s.Observed)
		o.IntentID, o.Processed = intent, false
		o.CreatedAt = now
		s.Observations = append(s.Observations, o)
	}
}
