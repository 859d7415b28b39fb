// Package plan covers the part of a run before its tasks: the step that it begins with
// (an analysis, an audit, an intake, ...), what is made of the answer, whether a
// person has to approve it, which intents it waits for, and which children it is
// split into.
//
//	type of intent     first step   its answer leads to
//	(any other)        analyze      questions, architect, tasks or children
//	audit              (audit)      the end of the run
//	skill_extraction   observe      abstract, which leads to tasks, or the end of the run
//	with criteria      intake       questions, or the task of a goal
//
// The functions named after answers return an Outcome: what follows, as data.
package plan

import (
	"maps"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// State is how far the plan of an intent is.
type State struct {
	// Step is the one that the intent is at before its tasks.
	Step forge.Step
	// Attempts counts those of all such steps together.
	Attempts retry.Counter
	// Session is about Step.
	Session session.Session
	// Insufficient is why the analysis was not sufficient, for the architect.
	Insufficient string
	// Patterns are the findings of observe, for abstract.
	Patterns []forge.Pattern
	// Audit is the report of an audit; nil before there is one.
	Audit *forge.Audit
	// Context describes other intents, as of the admission.
	Context Context
	// Base is the commit of the base branch that the plan was made for; empty if that is not known.
	Base string
	// Gate decides whether a person has to approve the plan.
	Gate Gate
	// Depends are the intents that have to be done before the tasks begin.
	Depends Dependencies
	// Children are the intents that this one was split into.
	Children Children
	// Asked is about people who ask for another plan.
	Asked Asked
	// Taken is about the text of the intent where it came from.
	Taken Taken
	// Heard is about comments on it.
	Heard messages.Heard
}

// Asked has the wishes of people who were to approve, and asked for something else.
type Asked struct {
	// Wish is the newest request for another plan, which the prompt of the next
	// analysis repeats. It stays until the text of the intent changes, so that
	// a retry and an architect get it too. Nil if there is none.
	Wish *forge.Wish
	// Wishes counts those about plans in this run.
	Wishes int
	// Last is the newest about anything that waited for approval, a plan or
	// changes. Those who come later with the same hash are answered by it.
	Last approval.Wished
}

// Spent reports whether people have asked for another plan as often in this run as they may.
func (a *Asked) Spent() bool { return a.Wishes >= task.MaxWishes }

// Context describes earlier intents to an analysis. The project sends it with the
// admission.
type Context struct {
	// Past are earlier runs, the most relevant first.
	Past []forge.PastRun
	// Unread are observations that no reflection has read.
	Unread []forge.Observation
	// Knowledge was found out by goals, the most relevant first; a goal keeps its own.
	Knowledge []forge.Knowledge
}

// FirstStep returns the step that the flow of an intent begins with.
func FirstStep(in *forge.Intent) forge.Step {
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

// TurnTo goes on with another step, in a session of its own.
func (s *State) TurnTo(n session.Names, step forge.Step) {
	s.Step = step
	s.Attempts.Worked()
	s.Session.Start(n, "", step)
}

// Next begins the next attempt of the step.
func (s *State) Next(n session.Names) {
	s.Attempts.Next()
	if s.Session.Number == 0 {
		s.Session.Start(n, "", s.Step)
	}
}

// Complete gives a command what its step has to know of the project.
func (s *State) Complete(c *forge.Command) {
	switch s.Step {
	case forge.StepAudit:
		c.Input = &forge.ObserveInput{}
	case forge.StepObserve:
		c.Input = &forge.ObserveInput{Past: s.Context.Past, Observations: s.Context.Unread}
	case forge.StepAbstract:
		c.Input = &forge.AbstractInput{Patterns: s.Patterns}
	default:
		c.Input = &forge.AnalyzeInput{Past: s.Context.Past, Insufficient: s.Insufficient, Knowledge: s.Context.Knowledge}
	}
	s.Session.Assign(c)
}

// Drop forgets a plan, because the text that it is of has changed, or a person
// wants another one: then wish says which. The step that made it makes the next
// one, in the same session, unless it is turned to another step.
func (s *State) Drop(wish *forge.Wish) {
	s.Children, s.Gate.Collected = nil, approval.Collection{}
	s.Gate.Name("")
	s.Attempts.Worked()
	if s.Asked.Wish = wish; wish != nil {
		s.Asked.Wishes++
	}
}

// Retry begins another run.
func (s *State) Retry() {
	s.Attempts.Worked()
	s.Asked.Wishes = 0
}

// Answer gives an intent a person's answer to a question, and the parameter of its
// recipe that the answer fills.
func Answer(in *forge.Intent, a *forge.Answer) {
	// A fresh slice: views of the state before may still be read.
	in.Clarifications = slices.Clone(in.Clarifications)
	c := &in.Clarifications[a.Index]
	c.Answer = &a.Answer
	if c.Param == "" {
		return
	}
	with := map[string]string{}
	maps.Copy(with, in.With)
	with[c.Param] = a.Answer
	in.With = with
}

// Ask adds questions to those of an intent. Questions that were answered before
// stay, for the record and for the agent.
func Ask(in *forge.Intent, questions []forge.Clarification) {
	list := slices.Clone(in.Clarifications)
	for _, q := range questions {
		q.Answer = nil
		list = append(list, q)
	}
	in.Clarifications = list
}
