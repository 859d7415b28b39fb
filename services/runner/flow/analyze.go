package flow

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// admitted starts the run: with the first step of its flow, or, when a retry
// follows a plan that stands, with what was planned.
func (s *Intent) admitted(a *forge.RunAdmitted) (forge.Decision, error) {
	if s.phase != phaseEntering || a.Run != s.run {
		return ignore("the intent does not wait for admission to run %d", a.Run)
	}
	s.open.closeNote("enter")
	s.active, s.past, s.unread, s.knows = a.Active, a.Past, a.Unread, a.Knowledge
	s.pauses.project, s.pauses.over = max(s.pauses.project, a.Paused), max(s.pauses.over, a.Resumed)
	if !s.known {
		s.policy.Budget = a.Budget
	}
	if s.isPlanned() {
		s.gate()
	} else {
		s.startStep()
	}
	return forge.Applied, nil
}

func (s *Intent) isPlanned() bool { return len(s.tasks) > 0 || len(s.parts) > 0 }

// firstStep is what the flow of an intent begins with.
func firstStep(in *forge.Intent) forge.Step {
	switch {
	case in.Recipe != "":
		return forge.StepAnalyze
	case in.Type == forge.TypeAudit:
		return forge.StepAudit
	case in.Type == forge.TypeSkillExtraction:
		return forge.StepObserve
	case in.IsGoal():
		return forge.StepIntake
	}
	return forge.StepAnalyze
}

// turnTo goes on with another step, which begins a conversation of its own.
func (s *Intent) turnTo(step forge.Step) {
	s.step = step
	s.analyze.worked()
	s.begin(&s.talk, "", step)
}

// startStep issues the step that the intent as a whole is at.
func (s *Intent) startStep() {
	s.phase = phaseAnalyzing
	s.analyze.number++
	s.analyze.claim = 1
	if s.talk.number == 0 {
		s.begin(&s.talk, "", s.step)
	}
	c := forge.Command{
		To:           s.key,
		Attempt:      forge.Attempt{Step: s.step, Number: s.analyze.number, Claim: 1},
		Intent:       s.intent,
		Instructions: s.instructions,

		LimitedAgents: s.avoided(),
	}
	switch s.step {
	case forge.StepAudit:
		c.Input = &forge.ObserveInput{}
	case forge.StepObserve:
		c.Input = &forge.ObserveInput{Past: s.past, Observations: s.unread}
	case forge.StepAbstract:
		c.Input = &forge.AbstractInput{Patterns: s.patterns}
	default:
		c.Input = &forge.AnalyzeInput{Active: s.active, Past: s.past, Insufficient: s.insufficient}
	}
	s.talk.in(&c)
	s.send(c)
}

// adopt takes the project's policy as a worker has read it.
func (s *Intent) adopt(p *forge.Policy) {
	if p == nil {
		return
	}
	first := !s.known
	s.policy, s.known = *p, true
	if first && s.usage.CostUSD > 0 {
		s.settle() // of what was spent before it was known that there is a budget
	}
}

// analyzed takes an analysis: questions, a plan, or that it takes a deeper look.
func (s *Intent) analyzed(r *forge.Result) {
	a := forge.As[*forge.Analysis](r.Output)
	if s.refreshing {
		s.refreshed(r)
		return
	}
	s.talk.heardOf(r.Session)
	s.adopt(a.Policy)
	switch {
	case len(a.Clarifications) > 0:
		s.analyze.worked()
		s.ask(a.Clarifications)
		return
	case a.Insufficient != "" && r.Attempt.Step == forge.StepAnalyze && len(a.Tasks) == 0 && len(a.Children) == 0:
		s.adjust(ruleArchitect, "", "%s", firstLine(a.Insufficient))
		s.insufficient = a.Insufficient
		s.turnTo(forge.StepArchitect)
		s.startStep()
		return
	}
	if err := s.take(a, r.Attempt.Number); err != nil {
		s.invalid(r, err)
		return
	}
	if s.intent.Type == "" {
		s.intent.Type = a.Type
	}
	s.judge(a.Risk)
	s.reason = a.NothingToDo
	s.decideOn(a.DependsOn)
}

// invalid takes an answer that cannot be used.
func (s *Intent) invalid(r *forge.Result, err error) {
	s.outcome(string(forge.FailInvalidOutput))
	s.failed(nil, &forge.Result{Attempt: r.Attempt, Output: &forge.Failure{
		Reason: forge.FailInvalidOutput, Message: err.Error(),
	}})
}

// take keeps what an analysis planned. On an error nothing is kept.
func (s *Intent) take(a *forge.Analysis, number int) error {
	tasks, err := plan(s.key.Intent, a.Tasks)
	if err != nil {
		return err
	}
	parts, err := s.partsOf(a.Children, number)
	switch {
	case err != nil:
		return err
	case len(tasks) > 0 && len(parts) > 0:
		return errors.New("the analysis has both tasks and parts; it can have one or the other")
	case len(tasks) == 0 && len(parts) == 0 && a.NothingToDo == "":
		return errors.New("the analysis found neither tasks nor questions")
	}
	s.analyze.worked()
	s.tasks, s.parts = tasks, parts
	return nil
}

// judge sets the effective risk.
func (s *Intent) judge(risk forge.Risk) {
	s.judged = risk
	if s.judged.Rank() == 0 {
		s.judged = forge.RiskMed // not judged is not harmless
	}
	s.intent.Risk = forge.MaxRisk(s.declared, s.judged)
}

// decideOn sees what has to happen before a plan is carried out.
func (s *Intent) decideOn(after []forge.IntentID) {
	s.planHash = hashPlan(s.intent, s.tasks, s.parts)
	s.depends = nil
	for _, id := range slices.Concat(s.intent.DependsOn, after) {
		if !slices.ContainsFunc(s.depends, func(d dependency) bool { return d.id == id }) {
			s.depends = append(s.depends, dependency{id: id})
		}
	}
	s.gate()
}

// ask pauses the intent until a person has answered. Questions that were
// answered before stay, for the record and for the agent.
func (s *Intent) ask(questions []forge.Clarification) {
	list := slices.Clone(s.intent.Clarifications)
	for _, q := range questions {
		q.Answer = nil
		list = append(list, q)
	}
	s.intent.Clarifications = list
	s.phase = phaseAsking
	s.reason = fmt.Sprintf("%d question(s) to answer", len(questions))
	s.adjust(ruleClarify, "", "%d question(s)", len(questions))
}
