package flow

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// aggregate ends a run whose tasks have all ended.
func (s *Intent) aggregate() {
	for _, t := range s.tasks {
		if t.stage != stageDone && s.reason == "" {
			s.reason = string(t.ID) + ": " + t.Failure
		}
	}
	s.finish(s.status())
}

// status sums up the tasks: done if all are, error if none is, blocked
// otherwise.
func (s *Intent) status() forge.Status {
	done := 0
	for _, t := range s.tasks {
		if t.stage == stageDone {
			done++
		}
	}
	switch done {
	case len(s.tasks):
		return forge.StatusDone
	case 0:
		return forge.StatusError
	}
	return forge.StatusBlocked
}

// finish ends a run: those who wait for the intent are told at once, then it is
// reflected upon.
func (s *Intent) finish(status forge.Status) {
	s.stopRefreshing()
	s.intent.Status = status
	s.endRun()
	s.phase = phaseReflecting
	s.reflect.errors = 0
	s.startReflect()
}

// endRun tells the lane, which forgets everything that the intent held there.
func (s *Intent) endRun() {
	s.open.notes = nil
	s.ends++
	s.tellLane("end", false, forge.Event{End: &forge.End{
		Run: s.run, Number: s.ends, Status: s.intent.Status, SpentUSD: s.usage.CostUSD,
	}})
}

func (s *Intent) startReflect() {
	s.reflect.number++
	s.reflect.claim = 1
	h := s.record()
	s.open.issue(&s.eff, forge.Command{
		To:           s.key,
		Attempt:      forge.Attempt{Step: forge.StepReflect, Number: s.reflect.number, Claim: 1},
		Intent:       s.intent,
		History:      &h,
		Observations: s.observations,
	})
}

func (s *Intent) reflected(*forge.Result) {
	for i := range s.observations {
		s.observations[i].Processed = true
	}
	s.close()
}

// reflectFailed tries once more; the run is over either way.
func (s *Intent) reflectFailed(*forge.Result) {
	s.reflect.errors++
	if s.reflect.errors < reflectAttempts {
		s.startReflect()
		return
	}
	s.close()
}

// close writes the run's history. A person may still retry what failed.
func (s *Intent) close() {
	s.phase = phaseClosed
	s.history = append(slices.Clip(s.history), s.record())
	s.eff.Ended = true
}

// record is the history of the run so far.
func (s *Intent) record() forge.History {
	h := forge.History{
		IntentID: s.key.Intent, Run: s.run, IntentType: s.intent.Type, IntentRisk: s.intent.Risk,
		Source: s.intent.Source, Title: s.intent.Title, Adjustments: slices.Clip(s.adjustments),
		StepResults: slices.Clip(s.steps), Observations: slices.Clone(s.observations), CreatedAt: s.now,
	}
	for _, r := range s.steps {
		if !slices.Contains(h.Flow, r.Step) {
			h.Flow = append(h.Flow, r.Step)
		}
	}
	switch {
	case s.intent.Status == forge.StatusDone:
		h.Outcome = forge.OutcomeSuccess
	case s.escalate:
		h.Outcome, h.FailureReason = forge.OutcomeEscalated, s.reason
	default:
		h.Outcome, h.FailureReason = forge.OutcomeFailed, s.reason
	}
	return h
}
