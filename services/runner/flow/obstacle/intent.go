package obstacle

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Known has the accounts that an intent knows to refuse calls, and the steps
// that it holds because of them.
type Known struct {
	// Keeps says that the project keeps accounts; an older runner did not.
	Keeps bool
	// Number is that of the newest message of the project.
	Number int
	// Asks says that the intent asks the person, for all that wait.
	Asks bool
	// Closed are the accounts that refuse calls.
	Closed []forge.Obstacle
	// Reports counts the messages to the project, and Answered is the newest
	// one that it has answered.
	Reports, Answered int
	// Held are the steps that wait for an account.
	Held []Hold
	// Look numbers the newest look at a red base branch that this intent was asked for.
	Look int
	// Lacks is by which answer in a row the project was told that a step of
	// this intent waits for a replica that can do it; 0: none does.
	Lacks int
	// Looks are the tasks that look whether the base branch passes, by themselves.
	Looks []forge.TaskID
}

// Hold is a step that waits for an account.
type Hold struct {
	// Task is the task whose step waits; empty for a step of the whole intent.
	Task forge.TaskID
	// Step is to be made again.
	Step forge.Step
	// Agent is the back end whose account it is.
	Agent string
}

// Restrict tells a worker which accounts it must not call. That is settled when
// the command is issued: it may have waited for money, or for the end of a pause.
func (k *Known) Restrict(c *forge.Command, now time.Time) {
	if k == nil || !k.Keeps && !c.Attempt.Step.CallsAgent() {
		return
	}
	c.Accounts, c.ClosedAgents = k.Number, nil
	for i := range k.Closed {
		a := &k.Closed[i]
		if !isClosed(a, now) || a.Agent != forge.GitOrigin && (!isAccount(a) || !c.Attempt.Step.CallsAgent()) {
			continue
		}
		c.ClosedAgents = append(c.ClosedAgents, a.Agent)
		// A fallback agent replaces one at its quota, but not one with refused credentials:
		// with a fallback, no person would notice the broken key.
		if !a.Until.IsZero() && !slices.Contains(c.LimitedAgents, a.Agent) { // another one may stand in
			c.LimitedAgents = append(slices.Clip(c.LimitedAgents), a.Agent)
		}
	}
}

// Find returns the entry of an account that refuses calls; nil if it does not.
func (k *Known) Find(agent string, now time.Time) *forge.Obstacle {
	for i := range k.Closed {
		if c := &k.Closed[i]; c.Agent == agent && isClosed(c, now) {
			return c
		}
	}
	return nil
}

// Refused notes that an account refused a call of this intent, so that no
// further one is made before the project has said what it knows.
func (k *Known) Refused(agent string, f *forge.Failure, now time.Time) {
	if Closes(f, now) && k.Find(agent, now) == nil {
		k.Closed = slices.DeleteFunc(slices.Clone(k.Closed), func(c forge.Obstacle) bool { return c.Agent == agent })
		k.Closed = append(k.Closed, closed(agent, f, now))
	}
}

// Of returns the name that a failed step would wait for: the agent whose
// account it is, or the origin.
func Of(r *forge.Result) string {
	if reason := r.Failure().Reason; reason == forge.FailOrigin || reason == forge.FailHeld && r.Agent == "" {
		return forge.GitOrigin
	}
	return r.Agent
}

// Hold keeps a step until its account takes calls again.
func (k *Known) Hold(h Hold) {
	// A task makes one step at a time, and so does the intent as a whole.
	k.Drop(func(o Hold) bool { return o.Task == h.Task })
	k.Held = append(slices.Clip(k.Held), h)
}

// Drop forgets steps that are not to be made again.
func (k *Known) Drop(which func(Hold) bool) {
	k.Held = slices.DeleteFunc(slices.Clone(k.Held), which)
}

// Learn takes over what the project knows, and returns the steps that go on because of it.
func (k *Known) Learn(m *forge.ObstaclesChanged, now time.Time) (free []Hold) {
	k.Number, k.Asks, k.Closed, k.Answered = m.Number, m.Asks, m.Closed, m.Heard
	if k.Answered < k.Reports {
		return nil // the project has not heard yet why they are held
	}
	asked := m.Look > k.Look // to look whether the base branch passes, with one of those that wait for it
	k.Look = max(k.Look, m.Look)
	for _, h := range k.Held {
		if h.Agent == forge.GitBase && asked && k.Find(h.Agent, now) != nil {
			asked = false
			free = append(free, h)
			k.Looks = append(slices.Clip(k.Looks), h.Task)
			continue
		}
		// A step may wait for one account while others are opened.
		if k.Find(h.Agent, now) == nil {
			free = append(free, h)
		}
	}
	k.Drop(func(h Hold) bool { return slices.Contains(free, h) })
	return free
}

// Quotas returns the steps that wait for an account that takes calls again at a known time, with
// that time. As long as the project has not heard of all reports, there are none.
func (k *Known) Quotas(now time.Time) iter.Seq2[Hold, time.Time] {
	return func(yield func(Hold, time.Time) bool) {
		for _, h := range k.Held {
			c := k.Find(h.Agent, now)
			if k.Answered >= k.Reports && c != nil && isAccount(c) && !c.Until.IsZero() && !yield(h, c.Until) {
				return
			}
		}
	}
}

// Why returns, for a person, which account the intent waits for, and whether a
// person has to resume it; empty if it waits for none.
func (k *Known) Why(now time.Time) (why string, person bool) {
	for _, h := range k.Held {
		c := k.Find(h.Agent, now)
		switch {
		case c == nil && why == "":
			// It is open for all that the intent knows, and the project has not answered yet.
			why = outside(h.Agent)
		case c == nil:
		case c.Until.IsZero():
			return Words(c), true
		default:
			why = Words(c)
		}
	}
	if c := k.Find(forge.AnyReplica, now); why == "" && c != nil && k.Lacks > 0 {
		return Words(c), true
	}
	return why, false
}

// What an intent shows that asks a person on behalf of all that wait: of an
// account of agents, of the origin, and of a base branch that does not pass, at
// which nothing looks while its task is paused.
const (
	asksAccount     = "no agent is called"
	waitsForOrigin  = "waits for the origin"
	waitsForReplica = "waits for a replica"
	looksPaused     = "paused, and nothing looks whether the base branch passes"
)

// Asking returns the kind of wait and the activity of an intent that asks a
// person on behalf of all that wait: why is the reason, and paused says that a
// person has paused every task that could look at a red base branch.
func Asking(why string, paused bool) (waiting forge.Waiting, activity string) {
	switch {
	case strings.HasPrefix(why, forge.BaseRed) && paused:
		return forge.WaitingPaused, looksPaused
	case strings.HasPrefix(why, forge.BaseRed):
		return forge.WaitingBase, "waits for the base branch to pass"
	case strings.HasPrefix(why, forge.OriginAway):
		return forge.WaitingPaused, waitsForOrigin
	case strings.HasPrefix(why, forge.NoReplica):
		return forge.WaitingPaused, waitsForReplica
	}
	return forge.WaitingPaused, asksAccount
}

// Asks reports whether an activity is one of Asking whose reason is outside of the project.
func Asks(activity string) bool {
	return slices.Contains([]string{asksAccount, waitsForOrigin, waitsForReplica, looksPaused}, activity)
}

// outside returns the beginning of a reason to wait, by which lists and notifications recognise it.
func outside(agent string) string {
	switch agent {
	case forge.GitOrigin, forge.GitPush:
		return forge.OriginAway
	case forge.GitBase:
		return forge.BaseRed
	}
	return forge.AccountClosed + agent
}

// Words says in a line which account refuses calls, since when, how long and
// why, or what the origin or the replicas do not do.
func Words(c *forge.Obstacle) string {
	if c.Agent == forge.AnyReplica {
		return fmt.Sprintf("%scan do a step since %s UTC: %s", forge.NoReplica, c.Since.UTC().Format("2006-01-02 15:04"), rule.FirstLine(c.Message))
	}
	if c.Agent == forge.GitBase {
		return fmt.Sprintf("%ssince %s UTC, at %s", forge.BaseRed, c.Since.UTC().Format("2006-01-02 15:04"), rule.FirstLine(c.Message))
	}
	if does := map[string]string{forge.GitOrigin: "cannot be reached", forge.GitPush: "refuses pushes"}[c.Agent]; does != "" {
		return fmt.Sprintf("%s%s since %s UTC: %s", outside(c.Agent), does, c.Since.UTC().Format("2006-01-02 15:04"), rule.FirstLine(c.Message))
	}
	text := outside(fmt.Sprintf("%s refuses all calls since %s UTC", c.Agent, c.Since.UTC().Format("2006-01-02 15:04")))
	if !c.Until.IsZero() {
		text += " until " + c.Until.UTC().Format("2006-01-02 15:04")
	}
	return text + ": " + rule.FirstLine(c.Message)
}
