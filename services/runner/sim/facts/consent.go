package facts

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
)

// Consent is read from an intent's journal: who asked for it, and who approved it.
type Consent struct {
	// Executing says that approvals are of changes by now. The caller sets it after each record.
	Executing bool
	// submitted says that the intent is known.
	submitted bool
	// requesters submitted the intent, or said more to it.
	requesters map[string]bool
	// plans and changes are the people who approved, by the hash of that.
	plans, changes map[string]map[string]bool
	// doubtful says that the policy decides whether a person lets the intent be
	// analyzed, and cleared has the texts with which one did.
	doubtful bool
	cleared  map[string]bool
	// asks says that approvals are of the text, because there is no plan yet.
	asks bool
	// title and body are the newest ones.
	title, body string
}

// Policy is the part of a project's policy that consent depends on.
type Policy struct {
	// Unapproved says what is analyzed before a person approved it.
	Unapproved string
	// Protected are the patterns of the paths of which a person has to approve a change.
	Protected []string
	// Approvals says how many people it takes, and who is none of them.
	Approvals forge.Approvals
}

// NewConsent returns the consent to an intent that was not submitted yet.
func NewConsent() *Consent {
	return &Consent{requesters: map[string]bool{}, cleared: map[string]bool{}, plans: map[string]map[string]bool{}, changes: map[string]map[string]bool{}}
}

// Learn records an event of the journal, which has only what was decided on. It returns an
// error for an approval by a person who asked for the intent, if the policy forbids that.
func (c *Consent) Learn(ev *forge.Event, policy forge.Approvals) error {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		if c.submitted { // what its publisher says later changes nothing
			return nil
		}
		c.submitted = true
		for _, p := range m.Intent.Requesters {
			c.requesters[p.Name] = true
		}
		c.title, c.body = m.Intent.Title, m.Intent.Body
		c.doubtful = !m.Preapproved && (m.Intent.Source.Foreign() || m.Intent.Risk == forge.RiskHigh)
	case *forge.Edit:
		if m.Body != nil || m.Title != nil && *m.Title != c.title {
			c.plans = map[string]map[string]bool{} // they were of another text
			c.requesters[ev.Actor] = c.requesters[ev.Actor] || m.Title != nil
		}
		if m.Title != nil {
			c.title = *m.Title
		}
		if m.Body != nil {
			c.body = *m.Body
		}
	case *forge.Answer:
		c.requesters[ev.Actor] = c.requesters[ev.Actor] || !decides(m)
	case *forge.RequestChanges: // whatever was approved of it counts for nothing any more
		c.requesters[ev.Actor] = true
		delete(c.plans, m.Hash)
		delete(c.changes, m.Hash)
	case *forge.Approve:
		if policy.NotRequester && c.requesters[ev.Actor] {
			return fmt.Errorf("%s approved what they asked for", ev.Actor)
		}
		c.approved(m.Plan, ev.Actor)
	default:
	}
	return nil
}

// approved records that a person approved what waits: the text, the plan or the changes.
func (c *Consent) approved(hash, by string) {
	of := c.plans
	switch {
	// An edit between two approvals makes another text of it; both stay
	// approved, and the rules are stricter.
	case c.asks:
		c.cleared[c.title+"\n"+c.body] = true
		return
	case c.Executing:
		of = c.changes
	}
	if of[hash] == nil {
		of[hash] = map[string]bool{}
	}
	of[hash][by] = true
}

// Plans returns how many people approved the same plan, at most. Which plan the intent
// follows is not known here: an approval of another one is found by the caller.
func (c *Consent) Plans() int { return most(c.plans) }

// most returns the size of the largest set of people.
func most(of map[string]map[string]bool) (n int) {
	for _, people := range of {
		n = max(n, len(people))
	}
	return n
}

// Check returns an error if something is done that lacks consent, and notes
// what approvals are of from then on.
func (c *Consent) Check(rec *forge.Record, policy *Policy) error {
	c.asks = rec.Summary.Waiting == forge.WaitingApproval && rec.Summary.TaskCount+len(rec.Summary.Children) == 0
	if err := c.checkAnalysis(rec, policy); err != nil {
		return err
	}
	return c.checkMerges(rec, policy)
}

// checkAnalysis returns an error if an agent is to be called for a text that a
// person has to approve first, and did not.
func (c *Consent) checkAnalysis(rec *forge.Record, policy *Policy) error {
	for i := range rec.Effects.Commands {
		cmd := &rec.Effects.Commands[i]
		text := cmd.Intent.Title + "\n" + cmd.Intent.Body // one that is held by a pause, say, keeps the text that it was made for
		if cmd.Attempt.Task == "" && CallsAgent(cmd) && c.doubtful && !c.cleared[text] && policy.Unapproved != "always" {
			return fmt.Errorf("%s of %s was issued, and nobody has approved its text", cmd.Attempt, cmd.To)
		}
	}
	return nil
}

// checkMerges returns an error if a change of protected paths is to be merged
// with the approvals of fewer people than it takes.
func (c *Consent) checkMerges(rec *forge.Record, policy *Policy) error {
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.QueueMerge](rec.Effects.Outbox[i].Message)
		if m == nil || !slices.ContainsFunc(m.Files, func(f string) bool { return pathpattern.Any(policy.Protected, f) }) {
			continue
		}
		if n := most(c.changes); n < policy.Approvals.Count {
			return fmt.Errorf("%s changes protected paths and is merged with approvals of %d people, and takes %d", m.Task, n, policy.Approvals.Count)
		}
	}
	return nil
}

// decides reports whether an answer decides between reviewers, and says nothing else.
func decides(a *forge.Answer) bool { return a.Answer == "approve" || a.Answer == "reject" }

// CallsAgent reports whether a command calls an agent, which costs money. A
// judge whom no criterion is left for calls none.
func CallsAgent(c *forge.Command) bool {
	s := c.Attempt.Step
	if s == forge.StepJudge && len(c.Iteration().Goal.Criteria) == 0 {
		return false
	}
	return !c.Analyze().PolicyOnly && s.CallsAgent() && s != forge.StepReflect && c.Intent.Recipe == ""
}
