package flow

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// smallestCall is the least, in US dollars, that a call is started with.
const smallestCall = 0.01

// unfunded is a command that waits for money.
type unfunded struct {
	command forge.Command
	asked   bool // the lane was asked; its answer is awaited
}

// send issues a command, once there is money for it if it costs any.
func (s *Intent) send(c forge.Command) {
	if s.holds(c.Attempt.Task) {
		s.held = append(s.held, c)
		return
	}
	if !s.charged(&c) {
		s.dispatch(c)
		return
	}
	// What is under way goes on before anything new begins.
	at := len(s.unfunded)
	if underWay(&c) {
		if i := slices.IndexFunc(s.unfunded, func(u unfunded) bool { return !u.asked && !underWay(&u.command) }); i >= 0 {
			at = i
		}
	}
	s.unfunded = slices.Insert(s.unfunded, at, unfunded{command: c})
	s.fund()
}

// underWay reports whether a call goes on with work that others have paid for.
func underWay(c *forge.Command) bool {
	g := c.Goal()
	return c.Resume || c.Attempt.Step == forge.StepReview || g != nil && (g.Execution != nil || g.Iteration > 1)
}

// dispatch issues a command and, if it is for one replica, watches over it.
func (s *Intent) dispatch(c forge.Command) {
	if c.Replica != "" {
		s.open.arm(&s.eff, forge.Timer{To: s.key, Key: claimKey(c.Attempt), At: s.now.Add(s.policy.ClaimTimeout)})
	}
	s.open.issue(&s.eff, c)
}

// charged reports whether a command draws on a budget.
func (s *Intent) charged(c *forge.Command) bool {
	b := s.budget()
	return costs(c.Attempt.Step) && s.intent.Recipe == "" && !c.Analyze().PolicyOnly && (b.IntentUSD > 0 || b.Shared())
}

// costs reports whether attempts of a step call an agent.
func costs(step forge.Step) bool {
	return step != forge.StepRebase && step != forge.StepMerge && step != forge.StepReflect
}

func (s *Intent) budget() forge.Budget {
	b := s.policy.Budget
	switch usd := s.intent.BudgetUSD; {
	case usd <= 0, s.foreign && b.IntentUSD > 0 && usd > b.IntentUSD: // a system may ask for less, not for more
	default:
		b.IntentUSD = usd
	}
	return b
}

// slice is what is set aside for one call: enough to work with, and little enough
// that several calls fit into the budget.
func slice(b forge.Budget) float64 {
	if b.CallUSD > 0 {
		return b.CallUSD
	}
	usd := float64(forge.DefaultCallUSD)
	for _, limit := range []float64{b.IntentUSD, b.ProjectUSD, b.DayUSD} {
		if limit > 0 {
			usd = min(usd, limit/4)
		}
	}
	return max(usd, smallestCall)
}

// room decides on one call, given what is left of a budget and whether more of it
// may come back from calls that run. wait means neither yes nor no.
func room(left, wish float64, more bool) (usd float64, wait bool) {
	switch {
	case left >= wish:
		return wish, false
	case more:
		return 0, true
	case left >= smallestCall:
		return left, false
	}
	return 0, false
}

// fund sees which of the calls that wait for money may begin, in order.
func (s *Intent) fund() {
	for i := 0; i < len(s.unfunded); {
		if s.unfunded[i].asked {
			i++
			continue
		}
		b := s.budget()
		usd := slice(b)
		if b.IntentUSD > 0 {
			reserved := s.setAside()
			var wait bool
			if usd, wait = room(b.IntentUSD-s.usage.CostUSD-reserved, usd, reserved > 0); wait {
				return
			}
		}
		c := s.unfunded[i].command
		switch {
		case usd == 0:
			s.unfunded = slices.Delete(s.unfunded, i, i+1)
			s.broke(c.Attempt, fmt.Sprintf(
				"the intent's budget of $%.2f is used up ($%.2f spent); raise it: pfl-forge retry %s --budget <usd>",
				b.IntentUSD, s.usage.CostUSD, s.key.Intent))
		case b.Shared():
			s.unfunded[i].asked = true
			s.unfunded[i].command.BudgetUSD = usd
			s.money++
			s.tellLane(spendKey(c.Attempt), true, forge.Event{Message: &forge.ReserveBudget{
				Run: s.run, Number: s.money, Attempt: c.Attempt, Budget: b, USD: usd, Begun: underWay(&c),
			}})
			i++
		default:
			s.unfunded = slices.Delete(s.unfunded, i, i+1)
			c.BudgetUSD = usd
			s.dispatch(c)
		}
	}
}

func spendKey(a forge.Attempt) string { return "spend/" + a.String() }

// setAside is what is held back for calls that have not ended.
func (s *Intent) setAside() float64 {
	var usd float64
	for i := range s.open.commands {
		usd += s.open.commands[i].BudgetUSD
	}
	for i := range s.unfunded {
		usd += s.unfunded[i].command.BudgetUSD
	}
	return usd
}

// funded takes the lane's answer.
func (s *Intent) funded(f *forge.BudgetReserved) (forge.Decision, error) {
	i := slices.IndexFunc(s.unfunded, func(u unfunded) bool { return u.asked && u.command.Attempt == f.Attempt })
	if i < 0 {
		return ignore("attempt %s does not wait for money", f.Attempt)
	}
	c := s.unfunded[i].command
	s.unfunded = slices.Delete(s.unfunded, i, i+1)
	s.open.closeNote(spendKey(c.Attempt))
	if f.USD > 0 {
		c.BudgetUSD = f.USD
		s.dispatch(c)
	} else {
		s.broke(c.Attempt, fmt.Sprintf("%s, then: pfl-forge retry %s", f.Reason, s.key.Intent))
	}
	s.fund()
	return forge.Applied, nil
}

// broke makes a step wait for a person, because there is no money for it.
func (s *Intent) broke(a forge.Attempt, why string) {
	s.adjust(ruleBudget, a.Task, "%s", why)
	if a.Task == "" {
		s.phase = phaseUnfunded
		s.reason = why
		return
	}
	t := s.task(a.Task)
	t.stage, t.unfunded, t.Failure = stageUnfunded, a.Step, why
	if makes(a.Step) {
		t.Attempts--
	}
}

// isBroke reports whether anything waits for a budget to be raised.
func (s *Intent) isBroke() bool {
	return s.phase == phaseUnfunded || slices.ContainsFunc(s.tasks, func(t *task) bool { return t.stage == stageUnfunded })
}

// stillBroke says why what waits for money goes on waiting.
func (s *Intent) stillBroke(why string) {
	if s.phase == phaseUnfunded {
		s.reason = why
	}
	for _, t := range s.tasks {
		if t.stage == stageUnfunded {
			t.Failure = why
		}
	}
}

// refresh reads the project's policy again, because a person may have changed it.
func (s *Intent) refresh() {
	s.refreshing = true
	s.analyze.number++
	s.analyze.claim = 1
	s.dispatch(forge.Command{
		To: s.key, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: s.analyze.number, Claim: 1},
		Intent: s.intent, Input: &forge.AnalyzeInput{PolicyOnly: true},
	})
}

// stopRefreshing gives up reading the policy again: the run is over.
func (s *Intent) stopRefreshing() {
	if !s.refreshing {
		return
	}
	s.refreshing = false
	s.open.cancelTimer(parkKey("", forge.StepAnalyze))
	for _, a := range s.open.attempts() {
		if a.Step == forge.StepAnalyze {
			s.open.closeAttempt(a)
			s.eff.Cancels = append(s.eff.Cancels, a)
		}
	}
}

// refreshed goes on with what waited for money.
func (s *Intent) refreshed(r *forge.Result) {
	s.refreshing = false
	s.analyze.worked()
	if forge.As[*forge.Analysis](r.Output).Policy != nil {
		s.policy = *forge.As[*forge.Analysis](r.Output).Policy
	}
	if s.phase == phaseUnfunded {
		s.reason = ""
		s.startStep()
		return
	}
	if s.phase == phaseApproval {
		s.gate()
		return
	}
	for _, t := range s.guarded() {
		if !s.guard(t) {
			s.land(t)
		}
	}
	for _, begins := range []bool{false, true} {
		for _, t := range s.tasks {
			if t.stage == stageUnfunded && begins == makes(t.unfunded) {
				t.Failure = ""
				s.again(t, t.unfunded)
			}
		}
	}
}

// dropUnfunded forgets commands that are not to be issued any more.
func (s *Intent) dropUnfunded(which func(forge.Attempt) bool) {
	kept := s.unfunded[:0:0]
	for _, u := range s.unfunded {
		if which(u.command.Attempt) {
			s.open.closeNote(spendKey(u.command.Attempt))
		} else {
			kept = append(kept, u)
		}
	}
	s.unfunded = kept
}

// settle tells the lane what was spent, if anybody shares a budget.
func (s *Intent) settle() {
	if !s.budget().Shared() {
		return
	}
	s.money++
	open := s.open.attempts()
	for i := range s.unfunded {
		open = append(open, s.unfunded[i].command.Attempt)
	}
	s.tellLane("settle", false, forge.Event{Message: &forge.CommitBudget{Number: s.money, SpentUSD: s.usage.CostUSD, Open: open}})
}

// maxOwed bounds the attempts whose costs are still to come.
const maxOwed = 64

// owe expects that an attempt that nobody waits for any more still reports its costs.
func (s *Intent) owe(list ...forge.Attempt) {
	for _, a := range list {
		if costs(a.Step) && s.intent.Recipe == "" && len(s.owed) < maxOwed {
			s.owed = append(slices.Clip(s.owed), a)
		}
	}
}

// bill takes what an attempt cost that nobody waited for any more.
func (s *Intent) bill(r *forge.Result) (forge.Decision, error) {
	i := slices.Index(s.owed, r.Attempt)
	if i < 0 || r.IsStart() || !s.stoppedAt(r) && r.Usage == (forge.Usage{}) {
		return ignore("attempt %s is not open", r.Attempt)
	}
	s.owed = slices.Delete(slices.Clone(s.owed), i, i+1)
	s.usage = s.usage.Add(r.Usage)
	rec := s.stepRecord(r)
	rec.Outcome = outcomeUnwanted
	if s.phase == phaseClosed && len(s.history) > 0 {
		s.history = slices.Clone(s.history)
		h := &s.history[len(s.history)-1]
		h.StepResults = append(slices.Clip(h.StepResults), rec)
	} else {
		s.steps = append(s.steps, rec)
	}
	s.settle()
	return forge.Applied, nil
}

// outcomeUnwanted marks a step whose result came too late to count.
const outcomeUnwanted = "unwanted"
