package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/whole"
)

// money is a project's policy on what its agents may do: budgets, fallback agents,
// protected paths, the approvals that these need, and a second reviewer.
type money struct {
	budget    forge.Budget
	fallbacks int
	protected []string
	approvals forge.Approvals
	second    forge.SecondReview
	checks    int               // that a reviewer may ask for
	pull      *forge.PullPolicy // says how changes are merged by pull requests; nil where they are pushed
	parallel  int               // changes that are verified at once for the merge queue
	batch     int               // changes that one run of it verifies
	once      bool              // what is ready is verified on what lands alone
	best      forge.BestOfTwo
	whole     *whole.Intents // nil where each task is merged by itself
	// unapproved says what is analyzed before a person approved it.
	unapproved string
	// refuses says that the account of the first agent refuses calls now and then.
	refuses bool
}

// init chooses a policy. Most seeds have no budget, so that the other rules are
// reached as well.
func (m *money) init(rng *rand.Rand) {
	m.fallbacks = rng.IntN(3)
	if rng.IntN(4) == 0 {
		m.protected = []string{"f0"}
	}
	m.approvals = forge.Approvals{Count: 1 + rng.IntN(3), NotRequester: rng.IntN(2) == 0}
	m.second, m.checks = anySecond(rng), rng.IntN(3)
	m.refuses = rng.IntN(6) == 0
	m.parallel, m.once = rng.IntN(5), rng.IntN(3) == 0
	m.unapproved = []string{"", "recipes", "always", "never"}[rng.IntN(4)]
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
	p.BestOfTwo, p.MergeWhole = m.best, m.whole != nil
	p.Second, p.AnalyzeBeforeApproval, p.MaxChecks = m.second, m.unapproved, m.checks
	p.MergeParallel, p.MergeBatch, p.VerifyInMerge, p.Pull = m.parallel, m.batch, m.once, m.pull
	return &p
}

// consent returns the part of the policy that consent depends on.
func (m *money) consent() *facts.Policy {
	return &facts.Policy{Unapproved: m.unapproved, Protected: m.protected, Approvals: m.approvals}
}

// raise returns a person's retry after a budget was used up, and raises the
// budgets of the project's configuration. Unwilling people sometimes forget to. The budget
// of a child is that of the intent at the top, which the retry is for then.
func (w *world) raise(s *forge.Summary, willing bool) (forge.IntentID, *forge.Retry) {
	r := &forge.Retry{}
	if !willing && w.rng.IntN(3) == 0 {
		return s.Key.Intent, r // and forgets to raise it
	}
	b := &w.money.budget
	for _, limit := range []*float64{&b.ProjectUSD, &b.DayUSD, &b.IntentUSD} {
		if *limit > 0 {
			*limit += 10
		}
	}
	if b.IntentUSD == 0 {
		return s.Key.Intent, r
	}
	bills, top := checker{w}.bills(), s.Key.Intent
	for bills.parents[top] != "" {
		top = bills.parents[top]
	}
	if bills.own[top] > 0 || w.rng.IntN(2) == 0 {
		r.BudgetUSD = max(bills.own[top], b.IntentUSD) + 10
		return top, r
	}
	return s.Key.Intent, r
}

// spend returns the failure of a call that stops at the money reserved for it, and nil otherwise.
func (m *money) spend(w *world, c *forge.Command) *forge.Failure {
	if !facts.CallsAgent(c) || c.BudgetUSD == 0 || !w.chance(8) {
		return nil
	}
	return &forge.Failure{Reason: forge.FailBudget, Message: "what was set aside for the call is used up"}
}

// limited reports whether the project has a budget.
func (m *money) limited() bool { return m.budget.IntentUSD > 0 || m.budget.Shared() }

// billed adds the cost of a call to its result. No call costs more than was reserved for it,
// because the way to its model does not let it.
func (w *world) billed(c *forge.Command, r *forge.Result) *forge.Result {
	if !facts.CallsAgent(c) || c.BudgetUSD == 0 && w.money.limited() {
		return r
	}
	most := c.BudgetUSD
	if most == 0 {
		most = 0.5
	}
	cost := most // as often as not: that is when budgets are exceeded
	if w.rng.IntN(2) == 0 {
		cost *= w.rng.Float64()
	}
	if r.Failure() != nil && r.Failure().Reason == forge.FailBudget {
		cost = most
	}
	r.Usage.Calls, r.Usage.CostUSD = 1, cost
	return r
}

// checkReserved returns an error if an agent is to be called without reserved money, although the
// project has a budget.
func (w checker) checkReserved(rec *forge.Record) error {
	for i := range rec.Effects.Commands {
		if c := &rec.Effects.Commands[i]; facts.CallsAgent(c) && c.BudgetUSD == 0 && w.money.limited() {
			return fmt.Errorf("%s of %s was issued without reserved money", c.Attempt, c.To)
		}
	}
	return nil
}

// checkMoney returns an error if a budget was exceeded: that of the project, or of an intent with
// all that it was split into; or if something is still reserved at the end.
func (w checker) checkMoney() error {
	bills := w.bills()
	const fraction = 1e-6 // of a dollar, from sums of fractions
	b := w.money.budget
	var all float64
	trees := map[forge.IntentID]float64{}
	for id, usd := range bills.spent {
		all += usd
		for bills.parents[id] != "" {
			id = bills.parents[id]
		}
		trees[id] += usd
	}
	if b.ProjectUSD > 0 && all > b.ProjectUSD+fraction {
		return fmt.Errorf("$%.2f were spent of the project's budget of $%.2f", all, b.ProjectUSD)
	}
	for _, key := range w.keys {
		id := key.Intent
		if most := max(bills.own[id], b.IntentUSD); most > 0 && trees[id] > most+fraction {
			return fmt.Errorf("$%.2f were spent by %s and what it was split into, of a budget of $%.2f", trees[id], id, most)
		}
	}
	project := forge.Key{Project: project}
	for _, n := range machine.Fold(project, w.journal[project]).Pending().Outbox {
		if f := forge.As[*forge.BudgetReserved](n.Message); f != nil && f.USD > 0 {
			return fmt.Errorf("$%.2f are still set aside for %s of %s", f.USD, f.Attempt, n.To)
		}
	}
	return nil
}

// bills sums up the money in the journals.
type bills struct {
	// parents has the intent that each child was split from, spent the costs of each, and own
	// the highest budget that it was given by itself.
	parents    map[forge.IntentID]forge.IntentID
	spent, own map[forge.IntentID]float64
}

// bills reads the journals.
func (w checker) bills() bills {
	b := bills{map[forge.IntentID]forge.IntentID{}, map[forge.IntentID]float64{}, map[forge.IntentID]float64{}}
	for _, key := range w.intents() {
		for _, rec := range w.journal[key] {
			for _, ev := range rec.Events {
				switch m := ev.Message.(type) {
				case *forge.Submit:
					b.parents[key.Intent] = cmp.Or(b.parents[key.Intent], m.Intent.Parent)
					b.own[key.Intent] = max(b.own[key.Intent], m.Intent.BudgetUSD)
				case *forge.Retry:
					b.own[key.Intent] = max(b.own[key.Intent], m.BudgetUSD)
				case *forge.Result:
					b.spent[key.Intent] += m.Usage.CostUSD
				default: // has no price
				}
			}
		}
	}
	return b
}
