package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Ended carries the facts about an intent that the record of its run needs.
type Ended struct {
	// Intent is as it was at the end.
	Intent *forge.Intent
	// Run is the number of the run that ended.
	Run int
	// Escalated says that only a person can resolve a conflict.
	Escalated bool
	// Reason says why it was no success.
	Reason string
}

// outcome returns how the run ended, and why if that was no success.
func (e *Ended) outcome() (forge.Outcome, string) {
	switch {
	case e.Intent.Status == forge.StatusDone:
		return forge.OutcomeSuccess, ""
	case e.Escalated:
		return forge.OutcomeEscalated, e.Reason
	}
	return forge.OutcomeFailed, e.Reason
}

// End closes the present run and returns its record.
func (s *State) End(now time.Time, e Ended) forge.History {
	h := forge.History{
		IntentID: e.Intent.ID, Run: e.Run, IntentType: e.Intent.Type, IntentRisk: e.Intent.Risk,
		Source: e.Intent.Source, Title: e.Intent.Title, Adjustments: slices.Clip(s.Adjustments),
		StepResults: slices.Clip(s.Steps), StartedAt: s.Started, CreatedAt: now,
	}
	for _, o := range s.Observations {
		if !o.CreatedAt.Before(s.Started) {
			h.Observations = append(h.Observations, o)
		}
	}
	for i := range s.Steps {
		if !slices.Contains(h.Flow, s.Steps[i].Step) {
			h.Flow = append(h.Flow, s.Steps[i].Step)
		}
	}
	h.Outcome, h.FailureReason = e.outcome()
	s.Runs = append(slices.Clip(s.Runs), h)
	return h
}

// EndedOtherwise corrects how the newest run ended.
func (s *State) EndedOtherwise(e Ended) {
	if len(s.Runs) == 0 {
		return
	}
	s.Runs = slices.Clone(s.Runs)
	h := &s.Runs[len(s.Runs)-1]
	h.Outcome, h.FailureReason = e.outcome()
}

// Lesson returns the short form of a run that analyses of other intents get.
func Lesson(h *forge.History, files []string) *forge.PastRun {
	p := forge.PastRun{
		IntentID: h.IntentID, Run: h.Run, Title: h.Title, Type: h.IntentType, Outcome: h.Outcome,
		Reason: rule.FirstLine(h.FailureReason), Files: files, At: h.CreatedAt,
	}
	for _, a := range h.Adjustments {
		if !slices.Contains(p.Rules, a.Rule) {
			p.Rules = append(p.Rules, a.Rule)
		}
	}
	return &p
}

// Reflected adds the results of a reflection to the run that it was about, and marks
// the observations that it read.
func (s *State) Reflected(now time.Time, id forge.IntentID, r *forge.RunReflected) (forge.Decision, error) {
	i := slices.IndexFunc(s.Runs, func(h forge.History) bool { return h.Run == r.Run })
	if i < 0 {
		if !slices.ContainsFunc(s.Observations, func(o forge.Observation) bool { return !o.Processed && slices.Contains(r.Read, o.ID) }) {
			return rule.Ignore("none of the runs of %q that have ended, and none of its unread observations, is in the reflection", id)
		}
		s.read(r.Read)
		return forge.Applied, nil
	}
	if slices.ContainsFunc(s.Runs[i].StepResults, func(o forge.StepRecord) bool {
		return o.Step == forge.StepReflect && o.Attempt == r.Step.Attempt
	}) {
		return rule.Ignore("reflection %d is known", r.Step.Attempt)
	}
	s.Usage = s.Usage.Add(r.Step.Usage)
	s.read(r.Read)
	reflectedOn(&s.Runs[i], now, r)
	return forge.Applied, nil
}

// read marks observations as read, also in the records of the runs that made them.
func (s *State) read(ids []string) {
	s.Observations, s.Runs = processed(s.Observations, ids), slices.Clone(s.Runs)
	for i := range s.Runs {
		s.Runs[i].Observations = processed(s.Runs[i].Observations, ids)
	}
}

// reflectedOn adds to a run's record what a reflection made of it.
func reflectedOn(h *forge.History, now time.Time, r *forge.RunReflected) {
	h.StepResults = append(slices.Clip(h.StepResults), r.Step)
	if !slices.Contains(h.Flow, forge.StepReflect) {
		h.Flow = append(slices.Clip(h.Flow), forge.StepReflect)
	}
	h.Adjustments = slices.Clip(h.Adjustments)
	for _, p := range r.Proposed {
		h.Adjustments = append(h.Adjustments, forge.Adjustment{Rule: rule.Proposed, Detail: fmt.Sprintf("%s: %s", p.ID, p.Title), At: now})
	}
	h.Adjustments = append(h.Adjustments, r.Dropped...)
}

// processed returns the observations with those marked that were read.
func processed(list []forge.Observation, ids []string) []forge.Observation {
	list = slices.Clone(list)
	for i := range list {
		list[i].Processed = list[i].Processed || slices.Contains(ids, list[i].ID)
	}
	return list
}
