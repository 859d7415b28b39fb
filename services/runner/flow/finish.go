package flow

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// aggregate ends a run whose tasks have all ended.
func (s *Intent) aggregate() {
	for _, t := range s.tasks {
		if t.stage != stageDone && s.reason == "" {
			s.reason = string(t.ID) + ": " + t.Failure
			if t.loop != nil {
				s.reason = t.Failure // there is no other task
			}
		}
	}
	s.finish(s.status())
}

// status sums up the tasks.
func (s *Intent) status() forge.Status {
	done := 0
	for _, t := range s.tasks {
		if t.stage == stageDone {
			done++
		}
	}
	return aggregated(done, len(s.tasks))
}

// aggregated is done if all are, error if none is, blocked otherwise.
func aggregated(done, all int) forge.Status {
	switch done {
	case all:
		return forge.StatusDone
	case 0:
		return forge.StatusError
	}
	return forge.StatusBlocked
}

// finish ends a run: those who wait for the intent are told, and the project
// reflects upon it, unless its parts were reflected upon already.
func (s *Intent) finish(status forge.Status) {
	s.stopRefreshing()
	s.intent.Status = status
	s.close(len(s.parts) == 0 && !s.policy.Reflection.Off)
}

// close writes the run's history and tells the lane, which forgets everything that
// the intent held there. A person may still retry what failed.
func (s *Intent) close(reflect bool) {
	s.phase = phaseClosed
	s.dropHeld(func(forge.Attempt) bool { return true })
	h := s.record()
	s.history = append(slices.Clip(s.history), h)
	s.eff.Ended = true
	end := s.end()
	end.Past = s.lesson(&h)
	end.Observed = last(h.Observations, maxTold)
	end.Knowledge, end.Applied = last(s.learned[s.told[0]:], maxFound), s.applied[s.told[1]:]
	s.told = [2]int{len(s.learned), len(s.applied)}
	if reflect {
		h.Observations = nil
		h.StepResults, h.Adjustments = last(h.StepResults, maxTold), last(h.Adjustments, maxTold)
		end.Reflect = &forge.ReflectOn{Intent: s.intent, History: h, Policy: s.policy.Reflection}
	}
	s.tellEnd(end)
}

// endRun tells the lane that a run that is over ended otherwise.
func (s *Intent) endRun() { s.tellEnd(s.end()) }

func (s *Intent) end() *forge.RunEnded {
	s.ends++
	return &forge.RunEnded{Run: s.run, Number: s.ends, Status: s.intent.Status, SpentUSD: s.usage.CostUSD, Parent: s.intent.Parent}
}

func (s *Intent) tellEnd(end *forge.RunEnded) {
	s.open.notes = nil
	s.tellLane("end", false, forge.Event{Message: end})
}

// corrected says in the history of the last run how it ended after all.
func (s *Intent) corrected() {
	if len(s.history) == 0 {
		return
	}
	s.history = slices.Clone(s.history)
	h := &s.history[len(s.history)-1]
	h.Outcome, h.FailureReason = s.outcomeOfRun()
}

// lesson is what others may learn from a run.
func (s *Intent) lesson(h *forge.History) *forge.PastRun {
	p := forge.PastRun{
		IntentID: h.IntentID, Run: h.Run, Title: h.Title, Type: h.IntentType, Outcome: h.Outcome,
		Reason: firstLine(h.FailureReason), Files: s.plannedFiles(maxPastFiles), At: h.CreatedAt,
	}
	for _, a := range h.Adjustments {
		if !slices.Contains(p.Rules, a.Rule) {
			p.Rules = append(p.Rules, a.Rule)
		}
	}
	return &p
}

const maxPastFiles = 30

// plannedFiles lists the files that the tasks are about.
func (s *Intent) plannedFiles(most int) []string {
	var list []string
	for _, t := range s.tasks {
		for _, f := range t.RelevantFiles {
			if !slices.Contains(list, f) && len(list) < most {
				list = append(list, f)
			}
		}
	}
	return list
}

// reflected takes what a reflection made of a run.
func (s *Intent) reflected(r *forge.RunReflected) (forge.Decision, error) {
	i := slices.IndexFunc(s.history, func(h forge.History) bool { return h.Run == r.Run })
	if i < 0 {
		if !slices.ContainsFunc(s.observations, func(o forge.Observation) bool { return !o.Processed && slices.Contains(r.Read, o.ID) }) {
			return ignore("run %d of %q has not ended", r.Run, s.key.Intent)
		}
		s.observations = processed(s.observations, r.Read)
		return forge.Applied, nil
	}
	if slices.ContainsFunc(s.history[i].StepResults, func(o forge.StepRecord) bool {
		return o.Step == forge.StepReflect && o.Attempt == r.Step.Attempt
	}) {
		return ignore("reflection %d is known", r.Step.Attempt)
	}
	s.usage = s.usage.Add(r.Step.Usage)
	s.history = slices.Clone(s.history)
	h := &s.history[i]
	h.StepResults = append(slices.Clip(h.StepResults), r.Step)
	if !slices.Contains(h.Flow, forge.StepReflect) {
		h.Flow = append(slices.Clip(h.Flow), forge.StepReflect)
	}
	h.Adjustments = slices.Clip(h.Adjustments)
	for _, p := range r.Proposed {
		h.Adjustments = append(h.Adjustments, forge.Adjustment{
			Rule: ruleProposed, Detail: fmt.Sprintf("%s: %s", p.ID, p.Title), At: s.now,
		})
	}
	h.Adjustments = append(h.Adjustments, r.Dropped...)
	h.Observations = processed(h.Observations, r.Read)
	s.observations = processed(s.observations, r.Read)
	if r.Step.Usage.CostUSD > 0 {
		s.settle()
	}
	return forge.Applied, nil
}

// processed marks observations as read.
func processed(list []forge.Observation, ids []string) []forge.Observation {
	list = slices.Clone(list)
	for i := range list {
		list[i].Processed = list[i].Processed || slices.Contains(ids, list[i].ID)
	}
	return list
}

// record is the history of the run so far.
func (s *Intent) record() forge.History {
	h := forge.History{
		IntentID: s.key.Intent, Run: s.run, IntentType: s.intent.Type, IntentRisk: s.intent.Risk,
		Source: s.intent.Source, Title: s.intent.Title, Adjustments: slices.Clip(s.adjustments),
		StepResults: slices.Clip(s.steps), StartedAt: s.runStarted, CreatedAt: s.now,
	}
	for _, o := range s.observations {
		if !o.CreatedAt.Before(s.runStarted) {
			h.Observations = append(h.Observations, o)
		}
	}
	for _, r := range s.steps {
		if !slices.Contains(h.Flow, r.Step) {
			h.Flow = append(h.Flow, r.Step)
		}
	}
	h.Outcome, h.FailureReason = s.outcomeOfRun()
	return h
}

func (s *Intent) outcomeOfRun() (forge.Outcome, string) {
	switch {
	case s.intent.Status == forge.StatusDone:
		return forge.OutcomeSuccess, ""
	case s.escalate:
		return forge.OutcomeEscalated, s.reason
	}
	return forge.OutcomeFailed, s.reason
}
