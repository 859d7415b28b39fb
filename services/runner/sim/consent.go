package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// consent is read from an intent's journal: who asked for it, and who approved it.
type consent struct {
	// requesters submitted the intent, or said more to it.
	requesters map[string]bool
	// plans and changes are the people who approved, by the hash of that.
	plans, changes map[string]map[string]bool
	// executing says that approvals are of changes by now.
	executing bool
	// title is the newest one.
	title string
}

// newConsent returns the consent to an intent that was not submitted yet.
func newConsent() *consent {
	return &consent{requesters: map[string]bool{}, plans: map[string]map[string]bool{}, changes: map[string]map[string]bool{}}
}

// learn records an event of the journal, which has only what was decided on. It returns an error for an approval by a person who asked for the
// intent, if the policy forbids that.
func (c *consent) learn(ev *forge.Event, policy forge.Approvals) error {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		for _, p := range m.Intent.Requesters {
			c.requesters[p.Name] = true
		}
		c.title = m.Intent.Title
	case *forge.Edit:
		if m.Body != nil || m.Title != nil && *m.Title != c.title {
			c.plans = map[string]map[string]bool{} // they were of another text
			c.requesters[ev.Actor] = c.requesters[ev.Actor] || m.Title != nil
		}
		if m.Title != nil {
			c.title = *m.Title
		}
	case *forge.Answer:
		c.requesters[ev.Actor] = c.requesters[ev.Actor] || !decides(m)
	case *forge.Approve:
		if policy.NotRequester && c.requesters[ev.Actor] {
			return fmt.Errorf("%s approved what they asked for", ev.Actor)
		}
		of := c.plans
		if c.executing {
			of = c.changes
		}
		if of[m.Plan] == nil {
			of[m.Plan] = map[string]bool{}
		}
		of[m.Plan][ev.Actor] = true
	default:
	}
	return nil
}

// most returns how many people approved the same thing, at most. Which plan the intent
// follows is not known here: an approval of another one is found by learn of knowledge.
func most(of map[string]map[string]bool) (n int) {
	for _, people := range of {
		n = max(n, len(people))
	}
	return n
}

// checkMerges returns an error if a change of protected paths is to be merged with the approvals of
// fewer people than it takes.
func (c *consent) checkMerges(rec *forge.Record, policy *money) error {
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.QueueMerge](rec.Effects.Outbox[i].Message)
		if m == nil || !slices.ContainsFunc(m.Files, func(f string) bool { return pathpattern.Any(policy.protected, f) }) {
			continue
		}
		if n := most(c.changes); n < policy.approvals.Count {
			return fmt.Errorf("%s changes protected paths and is merged with approvals of %d people, and takes %d", m.Task, n, policy.approvals.Count)
		}
	}
	return nil
}
