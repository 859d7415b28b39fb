package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/adoption"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// retry runs failed tasks again, or continues those that wait for a person, whom a change
// of the policy may have answered. Its budget and instructions count also while the
// policy is being read.
func (s person) retry(r *forge.Retry, from approval.Words) (forge.Decision, error) {
	if decision, err := retry.Raisable(&s.Intent, r, from.Parent); err != nil {
		return decision, err
	}
	place, reading := s.place(), s.Policy.Reading && !s.Policy.Unread
	switch {
	case r.Adopt != "":
		return s.adopt(r, from)
	case s.Phase == control.Children && r.BudgetUSD > 0:
		if decision, err := s.heed(r, from); err != nil {
			return decision, err
		}
		s.raiseChildren()
		return forge.Applied, nil
	case from.Parent && r.BudgetUSD > 0 && !s.overBudgetNow() && place.Place() != control.Failed:
		return s.heed(r, from) // it knows of the budget, and goes on as it does
	case place.Place() == control.Failed:
		if decision, err := s.heed(r, from); err != nil {
			return decision, err
		}
		s.Pause.Person = false
		course(s).anotherRun(r.Instructions)
		return forge.Applied, nil
	case s.Pause.Whole():
		return rule.Refuse("the intent is paused; resume it first: pfl-forge resume %s", s.key.Intent)
	case reading && r.Instructions == "" && r.BudgetUSD == 0:
		return rule.Ignore("pfl-forge.yaml is being read again already; the next run uses it")
	case reading:
	default:
		if decision, err := place.Check(control.Retry, ""); err != nil {
			return decision, err
		}
	}
	return s.continueWaiting(r, from, place.Guarded)
}

// adopt has a commit of another one become the change of a task, and nothing else go on.
func (s person) adopt(r *forge.Retry, from approval.Words) (forge.Decision, error) {
	w := adoption.Request{Intent: s.key.Intent, Commit: r.Adopt, Paused: s.Pause.Whole()}
	t, decision, err := adoption.Offered(&s.Tasks, &w)
	if err == nil {
		decision, err = s.bound().Check(from.By, "adopt the commit", t)
	}
	if err != nil {
		return decision, err
	}
	s.raise(r)
	s.instruct(r, from)
	s.join(from, nil)
	s.tasks(func(x *task.Turn) { task.Taking{Task: t}.Adopt(x, from.By) })
	return forge.Applied, nil
}

// continueWaiting lets go on what waits for a person. What waits for a budget, for approval, for
// protected paths or for who decides between reviewers may be allowed by another policy meanwhile,
// so that is read again.
func (s person) continueWaiting(r *forge.Retry, from approval.Words, guarded bool) (forge.Decision, error) {
	stale := s.overBudgetNow() || s.Phase == control.Approval || guarded || s.Tasks.Has(task.Disputed)
	if decision, err := s.heed(r, from); err != nil {
		return decision, err
	}
	for _, t := range append(s.Tasks.At(task.Waiting), s.Tasks.At(task.Held)...) {
		s.tasks(t.FilesMoved)
	}
	for _, t := range s.Tasks.At(task.Red) {
		s.commands(func(x *dispatch.Turn) { s.Dispatch.WithdrawTask(x, t.ID) }) // its timer
		access(s).lookNow(t.ID)
		s.tasks(func(x *task.Turn) { task.Fault{Task: t}.LookAgain(x, r.Instructions != "") })
	}
	if stale && !s.Policy.Reading {
		course(s).readPolicy()
	}
	return forge.Applied, nil
}

// overBudgetNow reports whether anything waits for a budget to be raised.
func (s *Intent) overBudgetNow() bool {
	return s.Phase == control.OverBudget || s.Tasks.Has(task.OverBudget)
}

// heed takes over budget and instructions of a retry, or refuses them, with everything as
// it was. Where the intent is at work, words that a parent passes on are left out if they
// are of a person whose approval counts here; where it failed, that is asked for once more.
func (s person) heed(r *forge.Retry, from approval.Words) (forge.Decision, error) {
	switch {
	case r.Instructions == "":
	case !from.Parent:
		if decision, err := s.bound().Check(from.By, "give these words, and a retry without them is open to all"); err != nil {
			return decision, err
		}
		s.instruct(r, from)
	case s.Phase == control.Closed || !s.bound().BindAny(r.Requesters):
		s.instruct(r, from)
	}
	s.raise(r)
	return forge.Applied, nil
}

// raise takes over the budget of a retry.
func (s person) raise(r *forge.Retry) {
	if r.BudgetUSD > 0 {
		s.Intent.BudgetUSD, s.Foreign = r.BudgetUSD, false
	}
}

// instruct takes over the instructions of a retry.
func (s person) instruct(r *forge.Retry, from approval.Words) {
	if r.Instructions != "" {
		s.Instructions = r.Instructions
		s.join(from, r.Requesters)
	}
}
