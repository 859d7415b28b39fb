// Package retry decides what follows an attempt that failed: at once again, after
// a pause, with another agent, or not at all. What is done about each reason is
// data, in rule.Failures; this package adds how often.
//
//	what rule.Failures says   what follows
//	CarryOn                   the step again at once; the attempt does not count
//	CarryOnTwice              the same, and the third time in a row when a person resumes it
//	AwaitWorker               the step again at once, with more patience; the attempt does not count
//	RaiseBudget               the step again at once with more, or NoBudget
//	WaitForIt                 another agent, or the step again when the limit ends
//	TryAgain, NewSession      the step again after a pause that doubles
//	TryOnce                   the same, and GiveUp if it happens again
//	TryLater                  the same, with a longer pause
//	AskPerson                 GiveUp
package retry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

const (
	// unknownLimit is the pause at a limit that did not tell when it ends.
	unknownLimit = 30 * time.Minute
	// longestLimit is how far off the end of a limit may be that is waited for.
	longestLimit = 8 * 24 * time.Hour
	// maxParks bounds the waits of one step in a row.
	maxParks = 50
	// maxUnwell is how many attempts of a step in a row are paid for that end
	// because their replicas are not well.
	maxUnwell = 3
)

// Counter counts the attempts of one step.
type Counter struct {
	// Number is that of the newest attempt, from 1.
	Number int
	// Claim is that of the newest attempt, from 1.
	Claim int
	// Errors counts the failures in a row that spent a retry.
	Errors int
	// Parks counts the waits at a limit in a row.
	Parks int
	// Waits counts the answers in a row that no replica can do it; Why is the
	// newest, and At when it came.
	Waits int
	Why   string
	At    time.Time
	// TurnEnds counts the attempts in a row that a limit of the project's own ended.
	TurnEnds int
	// Unwell counts the attempts since the last one that did its job which were
	// paid for, and ended because their replicas were not well.
	Unwell int
}

// Next begins the next attempt.
func (c *Counter) Next() {
	c.Number++
	c.Claim = 1
}

// Attempt returns the newest attempt of the step that the counter is for.
func (c *Counter) Attempt(task forge.TaskID, step forge.Step) forge.Attempt {
	return forge.Attempt{Task: task, Step: step, Number: c.Number, Claim: c.Claim}
}

// Worked notes that an attempt did its job: failures before it do not count any
// more.
func (c *Counter) Worked() {
	c.Errors, c.Parks, c.TurnEnds, c.Unwell = 0, 0, 0, 0
	c.Found()
}

// Found notes that a replica can do it, and reports whether that is news.
func (c *Counter) Found() bool {
	news := c.Waits > 0
	c.Waits, c.Why, c.At = 0, "", time.Time{}
	return news
}

// Limit is an agent that is at its limit.
type Limit struct {
	Agent string
	Until time.Time
}

// Limits are the agents that were found at their limits.
type Limits []Limit

// Names returns the agents that are at a limit now.
func (l Limits) Names(now time.Time) []string {
	var names []string
	for _, a := range l {
		if a.Until.After(now) {
			names = append(names, a.Agent)
		}
	}
	return names
}

// set returns the limits with another one, without those that are over.
func (l Limits) set(limit Limit, now time.Time) Limits {
	kept := slices.DeleteFunc(slices.Clone(l), func(a Limit) bool {
		return a.Agent == limit.Agent || !a.Until.After(now)
	})
	return append(kept, limit)
}

// Failed is an attempt that failed, with what the decision depends on.
type Failed struct {
	// Result is the failed one.
	*forge.Result
	// Now is when it was first read.
	Now time.Time
	// Policy is the one in force.
	Policy *forge.Policy
	// PolicyKnown says that the policy is the project's own, not the default.
	PolicyKnown bool
	// Budgeted says that calls of the intent draw on a budget.
	Budgeted bool
	// PolicyOnly says that the intent is reading its policy again.
	PolicyOnly bool
}

// Action says how to continue after a failed attempt.
type Action int

// The actions.
const (
	CarryOn   Action = iota // the step again at once, or when a person resumes what is paused because of Decision.Why; the attempt does not count
	Again                   // the step again at once
	Elsewhere               // the step again at once, in a new session with another agent
	Later                   // the step again at Decision.At
	NoBudget                // a person has to raise the budget
	GiveUp                  // a person has to look
)

// Decision says how to continue after a failed attempt, and when.
type Decision struct {
	// Action is never set without a reason in Detail or Why.
	Action Action
	// At is when the step is repeated, for Later.
	At time.Time
	// Rule is recorded with Detail, before the step is repeated; empty for
	// NoBudget and GiveUp, and where it is recorded already.
	Rule string
	// Detail is recorded with Rule.
	Detail string
	// Why says, for a person, why nothing follows by itself, for NoBudget and
	// GiveUp, and for CarryOn if the task is to be paused.
	Why string
}

// Decide returns how to continue after a failed attempt, counts the failure, and
// notes the limit of its agent.
func Decide(c *Counter, limits *Limits, f *Failed) Decision {
	then := rule.Failures[f.Failure().Reason].Then
	if isHopeless(then, c, f) {
		then = rule.AskPerson
	}
	if then != rule.AwaitWorker {
		c.Found()
	}
	switch {
	case f.Failure().Reason == forge.FailUnreserved && f.Budgeted && c.Errors < f.Policy.MaxAgentRetries:
		c.Errors++ // so that two that never agree come to an end
		return Decision{Action: Again, Rule: rule.MoreMoney, Detail: "nothing was reserved for this call yet"}
	case then == rule.AwaitWorker:
		d := Decision{Action: CarryOn, Detail: cause.Gist(f.Failure().Message)}
		if d.Detail != c.Why { // a night of them is one line of the history
			d.Rule = rule.AwaitReplica
		}
		c.Waits, c.Why, c.At = c.Waits+1, d.Detail, f.Now
		return d
	case then == rule.CarryOn:
		return Decision{Action: CarryOn, Rule: rule.Interrupted, Detail: cause.Gist(f.Failure().Message)}
	case then == rule.CarryOnTwice:
		return c.unwell(f)
	case then == rule.RaiseBudget:
		return Decision{Action: Again, Rule: rule.MoreMoney, Detail: fmt.Sprintf("$%.2f spent by this call", f.Usage.CostUSD)}
	case then == rule.WaitForIt:
		c.Parks++
		return atLimit(c, limits, f)
	case then == rule.AskPerson && f.Failure().Reason == forge.FailBudget && !f.PolicyOnly:
		return Decision{Action: NoBudget, Why: f.Failure().Message}
	case then == rule.TryOnce && c.TurnEnds > 0:
		return Decision{Action: GiveUp, Why: whyGivenUp(f.Failure(), c.Errors+1)}
	case then == rule.AskPerson || c.Errors >= f.Policy.MaxAgentRetries:
		return Decision{Action: GiveUp, Why: whyGivenUp(f.Failure(), c.Errors+1)}
	default:
		return afterPause(then, c, f)
	}
}

// unwell counts an attempt that was paid for and ended because its replica was not well.
// It may be the task's own fault: one that fills the disk of each replica ends so
// everywhere. So a person decides whether more is paid, and nothing is taken for failed.
// Processes that were killed report nothing: their attempt is made again by whoever is there
// next, who has counted when it says so.
func (c *Counter) unwell(f *Failed) Decision {
	killed, message := f.Failure().Reason == forge.FailKilledReplica, cause.Gist(f.Failure().Message)
	if c.Unwell++; c.Unwell < maxUnwell && !killed {
		return Decision{Action: CarryOn, Rule: rule.Interrupted, Detail: message}
	}
	c.Unwell = 0
	why := fmt.Sprintf("%s%d times in a row, the last time %s: %s", forge.ReplicasEnded, maxUnwell, f.Replica, message)
	if killed {
		why = forge.ReplicasEnded + "again and again: " + message
	}
	return Decision{Action: CarryOn, Rule: rule.Pause, Detail: why, Why: why}
}

// whyGivenUp returns why a step is not tried any more. Its first line, which is all that
// lists show of it, says the cause; what a command printed follows.
func whyGivenUp(f *forge.Failure, attempts int) string {
	text := strings.TrimSpace(f.Message)
	why := fmt.Sprintf("%s: %s", f.Reason, text)
	long := strings.Contains(text, "\n")
	if long {
		why = fmt.Sprintf("%s: %s", f.Reason, cause.Gist(text))
	}
	if attempts > 1 {
		why = fmt.Sprintf("%s (after %d attempts)", why, attempts)
	}
	if long {
		why += "\n" + text
	}
	return why
}

// isHopeless reports whether neither more budget nor waiting can help.
func isHopeless(then rule.Then, c *Counter, f *Failed) bool {
	switch then {
	case rule.RaiseBudget:
		return f.Attempt.Task == "" && f.PolicyOnly || f.Usage.CostUSD <= 0 || !f.Budgeted
	case rule.WaitForIt:
		return f.Failure().Until.Sub(f.Now) > longestLimit || c.Parks >= maxParks
	default:
		return false
	}
}

// afterPause spends a retry.
func afterPause(then rule.Then, c *Counter, f *Failed) Decision {
	pause := then.Pause(f.Policy.RetryBackoff, c.Errors)
	c.Errors++
	if then == rule.TryOnce {
		c.TurnEnds++
	}
	name := rule.RetryAgent
	if then == rule.NewSession {
		name = rule.FreshSession
	}
	return Decision{
		Action: Later, At: f.Now.Add(pause),
		Rule: name, Detail: fmt.Sprintf("%s: %s", f.Failure().Reason, cause.Gist(f.Failure().Message)),
	}
}

// atLimit turns to another agent, or waits for the first that is free again.
func atLimit(c *Counter, limits *Limits, f *Failed) Decision {
	until := f.Failure().Until
	switch {
	case until.After(f.Now):
	case f.Failure().Reason == forge.FailRateLimited:
		until = f.Now.Add(rule.TryLater.Pause(f.Policy.RetryBackoff, min(c.Parks-1, 5)))
	default:
		until = f.Now.Add(unknownLimit)
	}
	if f.Agent != "" {
		again := slices.Contains(limits.Names(f.Now), f.Agent)
		*limits = limits.set(Limit{Agent: f.Agent, Until: until}, f.Now)
		// Before its policy is known, a project may have other agents.
		if f.Failure().Reason == forge.FailQuota && !again && (len(*limits) <= f.Policy.Fallbacks || !f.PolicyKnown) {
			detail := fmt.Sprintf("%s is at its limit until %s", f.Agent, until.UTC().Format(time.RFC3339))
			return Decision{Action: Elsewhere, Rule: rule.Fallback, Detail: detail}
		}
		for _, a := range *limits {
			if a.Until.Before(until) {
				until = a.Until
			}
		}
	}
	return Decision{
		Action: Later, At: until,
		Rule: rule.Park, Detail: fmt.Sprintf("%s until %s", f.Failure().Reason, until.UTC().Format(time.RFC3339)),
	}
}

// Raisable refuses a person's retry whose budget is none, or is not the intent's own to raise.
func Raisable(in *forge.Intent, r *forge.Retry, byParent bool) (forge.Decision, error) {
	if r.BudgetUSD < 0 || r.BudgetUSD != r.BudgetUSD {
		return forge.Refused, &forge.FieldError{Field: "budget_usd", Reason: "must be a positive amount"}
	}
	if r.BudgetUSD > 0 && in.Parent != "" && !byParent {
		return rule.Refuse("the intent has the budget of %q, which it is a part of; raise that: pfl-forge retry %s --budget <usd>", in.Parent, in.Parent)
	}
	return forge.Applied, nil
}
