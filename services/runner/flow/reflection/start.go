package reflection

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Request asks for a reflection because a person wants it.
func (s *State) Request() (forge.Decision, error) {
	switch {
	case s.Requested:
		return rule.Ignore("a reflection is waiting already")
	case s.Last == nil:
		return rule.Refuse("nothing to reflect on: no run has ended yet, or reflection is off (reflection.enabled in pfl-forge.yaml)")
	}
	s.Requested = true
	return forge.Applied, nil
}

func (s *State) isWanted() bool { return len(s.Runs) > 0 || s.Requested }

// IsDue reports whether a reflection is to start now, if there is budget for it.
func (s *State) IsDue(paused bool) bool { return s.Current == nil && !paused && s.isWanted() }

// Skip tells the intents whose runs wait that there is no budget to reflect upon them: all, or
// the first alone.
func (s *State) Skip(out *outbox.Messages, refusal string, all bool, c *Context) {
	n := len(s.Runs)
	if !all {
		n = min(n, 1)
	}
	for _, r := range s.Runs[:n] {
		s.report(out, r.Intent, &forge.RunReflected{
			Run:     r.On.History.Run,
			Step:    forge.StepRecord{Step: forge.StepReflect, Attempt: s.Number + 1, Outcome: string(forge.FailBudget), At: c.Now},
			Dropped: []forge.Adjustment{{Rule: rule.Budget, Detail: "not reflected on: " + refusal, At: c.Now}},
		})
	}
	s.Number++
	s.Runs, s.Requested = slices.Clone(s.Runs[n:]), false
}

// Payer returns the intent whose costs those of the next reflection are.
func (s *State) Payer() forge.IntentID {
	if len(s.Runs) > 0 {
		return s.Runs[0].Intent
	}
	return s.Last.Intent // a person asks for one on the last run
}

// Start begins a reflection that is due and returns it to be issued.
func (s *State) Start(usd float64, c *Context) *Reflection {
	n := min(len(s.Runs), maxTogether)
	runs := slices.Clone(s.Runs[:n])
	s.Runs, s.Requested = slices.Clone(s.Runs[n:]), false
	if n == 0 {
		runs = []Run{*s.Last}
	}
	s.Current = &Reflection{Runs: runs, BudgetUSD: usd}
	return s.issue(c)
}

// issue makes an attempt at the reflection that is under way.
func (s *State) issue(c *Context) *Reflection {
	s.Number++
	r := s.Current
	r.Number = s.Number
	r.Observations = s.NextUnread()
	r.Known = nil
	for _, p := range rule.Last(s.Proposals, maxKnown) {
		status := forge.StatusProposed
		if in, ok := c.Intent(p.ID); ok {
			status = in.Status
		}
		r.Known = append(r.Known, forge.Proposal{ID: p.ID, Title: p.Title, Status: status})
	}
	return r
}

// retry makes another attempt, with another agent if this one is at its limit. It
// returns nil if that would not help.
func (s *State) retry(f *forge.Failure, agent string, c *Context) *Reflection {
	then := rule.Failures[f.Reason].Then
	r := s.Current
	switch {
	case r.Errors+1 >= maxAttempts, then == rule.RaiseBudget, then == rule.AskPerson, then == rule.WaitForIt && agent == "":
		return nil
	}
	r.Errors++
	if then == rule.WaitForIt {
		r.Avoid = append(slices.Clip(r.Avoid), agent)
	}
	return s.issue(c)
}
