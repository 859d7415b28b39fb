package dispatch

import (
	"cmp"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// limits returns the budgets in force for the intent: its own in place of the project's for each.
func (x *Turn) limits() forge.Budget {
	b := x.Budget
	b.IntentUSD = cmp.Or(x.OwnUSD, b.IntentUSD)
	return b
}

// accounted reports whether there is a budget that the costs of the intent count against.
func (x *Turn) accounted() bool { return x.limits().IntentUSD > 0 || x.Budget.Shared() }

// Charged reports whether calls of agents draw on a budget.
func (x *Turn) Charged() bool { return !x.Recipe && x.accounted() }

// charged reports whether a command needs reserved budget. A judge who is asked
// for no criterion, since commands decide all of them, calls no agent.
func (x *Turn) charged(c *forge.Command) bool {
	if g := c.Goal(); c.Attempt.Step == forge.StepJudge && g != nil && len(g.Criteria) == 0 {
		return false
	}
	return c.Attempt.Step.CallsAgent() && x.Charged()
}

// begun reports whether a call goes on with work that others have paid for.
func begun(c *forge.Command) bool {
	g := c.Goal()
	return c.Resume || c.Attempt.Step == forge.StepReview || g != nil && (g.Execution != nil || g.Iteration > 1)
}

// enqueue makes a command wait for budget. What is under way goes on before
// anything new begins.
func (s *State) enqueue(c *forge.Command) {
	at := len(s.Waiting)
	if begun(c) {
		if i := slices.IndexFunc(s.Waiting, func(w Call) bool { return w.Asked == 0 && !begun(&w.Command) }); i >= 0 {
			at = i
		}
	}
	s.Waiting = slices.Insert(s.Waiting, at, Call{Command: *c})
}

// Reserve asks the project to reserve budget for the calls that wait for it, in order. The
// project keeps the account: an intent shares its budget with its children, and the project's
// with all.
func (s *State) Reserve(x *Turn) {
	for i := range s.Waiting {
		if s.Waiting[i].Asked > 0 {
			continue
		}
		usd := budget.Slice(x.limits())
		s.Waiting[i].Command.BudgetUSD = usd
		c := s.Waiting[i].Command
		s.ask(x, &c, usd)
		s.Waiting[i].Asked = s.Messages
	}
}

// Answered takes the project's answer for a call that waits, and reports whether
// there is one. The answer to a question that was withdrawn, and asked again since, is none:
// the project has taken that money back.
func (s *State) Answered(x *Turn, f *forge.BudgetReserved) bool {
	i := slices.IndexFunc(s.Waiting, func(w Call) bool { return f.Number > 0 && w.Asked == f.Number && w.Command.Attempt == f.Attempt })
	if i < 0 {
		return false
	}
	c := s.Waiting[i].Command
	s.Waiting = slices.Delete(s.Waiting, i, i+1)
	s.Outbox.Answered(reserveKey(c.Attempt))
	if f.USD > 0 {
		c.BudgetUSD = f.USD
		s.Issue(x, &c)
	} else {
		x.Refused = append(x.Refused, Refusal{Attempt: c.Attempt, Why: f.Reason})
	}
	s.Reserve(x)
	return true
}

// Expects reports whether the costs of a withdrawn attempt are still to come.
func (s *State) Expects(a forge.Attempt) bool { return slices.Contains(s.Unbilled, a) }

// Billed notes that the costs of a withdrawn attempt have come.
func (s *State) Billed(a forge.Attempt) {
	i := slices.Index(s.Unbilled, a)
	s.Unbilled = slices.Delete(slices.Clone(s.Unbilled), i, i+1)
}

// expectCosts notes attempts whose costs may still come, although they are
// withdrawn.
func (s *State) expectCosts(x *Turn, list ...forge.Attempt) {
	for _, a := range list {
		if a.Step.CallsAgent() && !x.Recipe && len(s.Unbilled) < maxUnbilled {
			s.Unbilled = append(slices.Clip(s.Unbilled), a)
		}
	}
}

// dropWaiting forgets commands that wait for budget, and the requests for it.
func (s *State) dropWaiting(which func(forge.Attempt) bool) {
	kept := s.Waiting[:0:0]
	for i := range s.Waiting {
		if a := s.Waiting[i].Command.Attempt; which(a) {
			s.Outbox.Answered(reserveKey(a))
		} else {
			kept = append(kept, s.Waiting[i])
		}
	}
	s.Waiting = kept
}

// reserveKey returns the key of the request for an attempt's budget in the
// outbox.
func reserveKey(a forge.Attempt) string { return "spend/" + a.String() }

// ask asks the project to reserve budget for a call.
func (s *State) ask(x *Turn, c *forge.Command, usd float64) {
	s.Messages++
	s.Outbox.SendToProject(x.Effects, outbox.Project{
		From: x.Key, Key: reserveKey(c.Attempt), Number: s.Messages, Reply: true,
		Event: forge.Event{Message: &forge.ReserveBudget{
			Run: x.Run, Number: s.Messages, Attempt: c.Attempt, Budget: x.Budget, OwnUSD: x.OwnUSD, USD: usd, Begun: begun(c),
		}},
	})
}

// Commit tells the project what was spent, if there is a budget. What was
// reserved for attempts that are not open any more is released with it.
func (s *State) Commit(x *Turn) {
	if !x.accounted() {
		return
	}
	s.Messages++
	open := s.Outbox.Attempts()
	for i := range s.Waiting {
		open = append(open, s.Waiting[i].Command.Attempt)
	}
	s.Outbox.SendToProject(x.Effects, outbox.Project{
		From: x.Key, Key: "settle", Number: s.Messages,
		Event: forge.Event{Message: &forge.CommitBudget{Number: s.Messages, SpentUSD: x.SpentUSD, Open: open, OwnUSD: x.OwnUSD, Unbilled: s.Unbilled}},
	})
}
