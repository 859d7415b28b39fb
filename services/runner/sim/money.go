package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// money is a project's policy on what its agents may do: budgets, fallback agents,
// protected paths, and the approvals that these need.
type money struct {
	budget    forge.Budget
	fallbacks int
	protected []string
	approvals forge.Approvals
}

// overrun is the factor by which a call can exceed the money reserved for it
// before it is stopped: costs are known only after an answer.
const overrun = 1.25

// init chooses a policy. Most seeds have no budget, so that the other rules are
// reached as well.
func (m *money) init(rng *rand.Rand) {
	m.fallbacks = rng.IntN(3)
	if rng.IntN(4) == 0 {
		m.protected = []string{"f0"}
	}
	m.approvals = forge.Approvals{Count: 1 + rng.IntN(3), NotRequester: rng.IntN(2) == 0}
	switch rng.IntN(9) {
	case 0:
		m.budget.ProjectUSD = float64(2 + rng.IntN(10))
	case 1:
		m.budget.DayUSD = float64(2 + rng.IntN(10))
	case 2:
		m.budget.IntentUSD = float64(1 + rng.IntN(5))
		if rng.IntN(2) == 0 {
			m.budget.ProjectUSD = float64(2 + rng.IntN(10))
		}
	}
	if rng.IntN(2) == 0 {
		m.budget.CallUSD = float64(1 + rng.IntN(2))
	}
}

// policy returns the policy as a result of an analysis carries it.
func (m *money) policy() *forge.Policy {
	p := forge.DefaultPolicy()
	p.Budget, p.Fallbacks, p.ProtectedPaths, p.Approvals = m.budget, m.fallbacks, m.protected, m.approvals
	return &p
}

// raise returns a person's retry after a budget was used up, and raises the
// budgets of the project's configuration. Unwilling people sometimes forget to.
func (w *world) raise(s *forge.Summary, willing bool) *forge.Retry {
	r := &forge.Retry{}
	if !willing && w.rng.IntN(3) == 0 {
		return r // and forgets to raise it
	}
	b := &w.money.budget
	for _, limit := range []*float64{&b.ProjectUSD, &b.DayUSD, &b.IntentUSD} {
		if *limit > 0 {
			*limit += 10
		}
	}
	if s.Usage.CostUSD >= b.IntentUSD && b.IntentUSD > 0 {
		r.BudgetUSD = s.Usage.CostUSD + 10
	}
	return r
}

// agentStep reports whether a command calls an agent, which costs money.
func agentStep(c *forge.Command) bool {
	s := c.Attempt.Step
	return !c.Analyze().PolicyOnly && s.CallsAgent() && s != forge.StepReflect
}

// spend returns the failure of a call that stops at the money reserved for it,
// and nil otherwise.
func (m *money) spend(w *world, c *forge.Command) *forge.Failure {
	if !agentStep(c) || c.BudgetUSD == 0 || !w.chance(8) {
		return nil
	}
	return &forge.Failure{Reason: forge.FailBudget, Message: "what was set aside for the call is used up"}
}

// billed adds the cost of a call to its result. Only calls that fail for their
// budget cost more than was reserved.
func (w *world) billed(c *forge.Command, r *forge.Result) *forge.Result {
	if !agentStep(c) {
		return r
	}
	most := c.BudgetUSD
	if most == 0 {
		most = 0.5
	}
	cost := most * w.rng.Float64()
	if r.Failure() != nil && r.Failure().Reason == forge.FailBudget {
		cost = most * (1 + (overrun-1)*w.rng.Float64())
	}
	r.Usage.Calls, r.Usage.CostUSD = 1, cost
	return r
}

// checkMoney returns an error if the project's budget was exceeded by more than calls
// can overrun what was reserved for them, or if something is still reserved at the
// end.
func (w checker) checkMoney() error {
	var granted, unasked float64
	for _, key := range w.keys {
		asked := map[forge.Attempt]bool{}
		for _, rec := range w.journal[key] {
			for _, ev := range rec.Events {
				if f := forge.As[*forge.BudgetReserved](ev.Message); f != nil && f.USD > 0 {
					asked[f.Attempt] = true
				}
				if r := forge.As[*forge.Result](ev.Message); r != nil && r.Usage.CostUSD > 0 {
					if asked[r.Attempt] {
						granted += r.Usage.CostUSD
					} else {
						unasked += r.Usage.CostUSD
					}
				}
			}
		}
	}
	if limit := w.money.budget.ProjectUSD; limit > 0 && granted > limit*overrun+unasked {
		return fmt.Errorf("$%.2f were spent of a budget of $%.2f, beside $%.2f before it was known", granted, limit, unasked)
	}
	project := forge.Key{Project: project}
	for _, n := range machine.Fold(project, w.journal[project]).Pending().Outbox {
		if f := forge.As[*forge.BudgetReserved](n.Message); f != nil && f.USD > 0 {
			return fmt.Errorf("$%.2f are still set aside for %s of %s", f.USD, f.Attempt, n.To)
		}
	}
	return nil
}
