// Package approval decides whose approvals count, and when there are enough of them.
// It is the same for a plan and for changes that only people may approve; what differs
// is the hash, which names exactly what is approved.
package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// What an approval is of.
const (
	OfText    = "text" // to be analyzed: it costs money, and lets nothing through
	OfPlan    = "plan"
	OfChanges = "changes"
)

// Approval is a person's approval, as it is told to those who look at a commit
// later.
type Approval struct {
	// What is OfText, OfPlan or OfChanges.
	What string
	// Hash names the text, the plan or the changes, as the person did.
	Hash string
	// By is the person, and Event the id of the event with which they did.
	By, Event string
	// At is when it was decided on.
	At time.Time
}

// Collection holds the approvals of the one thing that an intent waits for. Those of
// anything else are void: the zero value, and a collection of another hash, hold none.
type Collection struct {
	// Given are the approvals, by different people, in the order in which they came.
	Given []Approval
}

// Of returns the approvals of exactly this plan, or these changes.
func (c *Collection) Of(what, hash string) []Approval {
	if hash == "" || len(c.Given) == 0 || c.Given[0].What != what || c.Given[0].Hash != hash {
		return nil
	}
	return c.Given
}

// Add adds an approval, and forgets those of anything else.
func (c *Collection) Add(a Approval) {
	c.Given = append(slices.Clone(c.Of(a.What, a.Hash)), a)
}

// Granted is an approval by as many people as it takes.
type Granted struct {
	// Rules are those that it was approved under.
	Rules forge.Approvals
	// Approvals are by different people, at least as many as the rules ask for.
	Approvals []Approval
}

// Voids reports whether an approval that was given counts no more once a person
// asks for what is done: they gave one, and who approves may not be who asks.
func (g *Granted) Voids(by string) bool {
	return g != nil && g.Rules.NotRequester && slices.ContainsFunc(g.Approvals, func(a Approval) bool { return Same(a.By, by) })
}

// VoidsAny is Voids for several people: a list of requesters.
func (g *Granted) VoidsAny(list []forge.Identity) bool {
	return slices.ContainsFunc(list, func(p forge.Identity) bool { return g.Voids(p.Name) })
}

// Names returns who gave approvals, in the order in which they did. A person is among them
// once, by the spelling that came first; approvals without a name are left out.
func Names(lists ...[]Approval) (names []string) {
	for _, a := range slices.Concat(lists...) {
		if a.By != "" && !slices.ContainsFunc(names, func(n string) bool { return Same(n, a.By) }) {
			names = append(names, a.By)
		}
	}
	return names
}

// Same reports whether two names are of the same person. Their case says nothing: a claim
// that is spelled otherwise must not free a person from it.
func Same(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// Rules are the rules for one intent.
type Rules struct {
	forge.Approvals

	// Approvers may approve; empty lets everyone.
	Approvers []string
	// Requesters are the people whose words are in the intent.
	Requesters []forge.Identity
	// Authors are the names that commits of other people in the changes say they were
	// made by, in each form in which a person here may have it. Nothing proves them.
	Authors []string
}

// Needed returns how many people have to approve.
func (r *Rules) Needed() int { return max(r.Count, 1) }

// Enough reports whether no further approval is needed. Those of one person count once.
func (r *Rules) Enough(given []Approval) bool {
	return len(Names(given)) >= r.Needed() || r.anyone() && len(given) > 0
}

// anyone reports whether it does not matter who approves, so that a name is not needed: a
// machine may know none of its user.
func (r *Rules) anyone() bool { return r.Needed() == 1 && !r.NotRequester && len(r.Approvers) == 0 }

// Barred returns the names of those who may not approve because they asked for the intent,
// whether that is proven or a system claims it.
func (r *Rules) Barred() (names []string) {
	if !r.NotRequester {
		return nil
	}
	for _, p := range r.Requesters {
		if p.Name != "" && !slices.ContainsFunc(names, func(n string) bool { return Same(n, p.Name) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

// Objection says why a person may not approve, and by which setting; both are empty if they
// may.
func (r *Rules) Objection(by string) (why, setting string) {
	if strings.TrimSpace(by) == "" && !r.anyone() {
		return "an approval counts only with the name of a person", "policy.approvals"
	}
	if len(r.Approvers) > 0 && !slices.Contains(r.Approvers, by) {
		return fmt.Sprintf("%q may not approve; those who may are: %s", by, strings.Join(r.Approvers, ", ")), "policy.approvers"
	}
	const setBy = "policy.approvals.not_requester"
	switch is := func(p forge.Identity) bool { return Same(p.Name, by) }; {
	case r.NotRequester && slices.ContainsFunc(r.Authors, func(name string) bool { return Same(name, by) }):
		return fmt.Sprintf("%q may not approve: a commit in it says that they made it; another person has to", by), setBy
	case !r.NotRequester || !slices.ContainsFunc(r.Requesters, is):
		return "", ""
	case slices.ContainsFunc(r.Requesters, func(p forge.Identity) bool { return p.Proven && is(p) }):
		return fmt.Sprintf("%q may not approve what they asked for, or put into words themselves; another person has to", by), setBy
	default:
		return fmt.Sprintf("%q may not approve: its sender claims that they asked for it; another person has to", by), setBy
	}
}

// Progress says how many approvals there are, such as "1 of 2 approvals (ada)"; empty while one is
// enough.
func (r *Rules) Progress(given []Approval) string {
	if r.Needed() == 1 {
		return ""
	}
	text := fmt.Sprintf("%d of %d approvals", len(given), r.Needed())
	if len(given) > 0 {
		text += " (" + strings.Join(Names(given), ", ") + ")"
	}
	return text
}

// Stuck says why there can never be enough approvals; empty if there can, as far as that is
// known.
func (r *Rules) Stuck() string {
	// Who could is known by name, or by number, or not at all.
	able := r.Approvers
	switch {
	case len(able) > 0:
		able = slices.DeleteFunc(slices.Clone(able), func(name string) bool { why, _ := r.Objection(name); return why != "" })
	case r.Persons > len(r.Barred()):
		able = make([]string, r.Persons-len(r.Barred()))
	case r.Persons == 0:
		return "" // not known
	}
	could := len(able)
	if r.Persons > 0 {
		could = min(could, r.Persons)
	}
	if could >= r.Needed() {
		return ""
	}
	return fmt.Sprintf("it needs %s, and %s here could give one: change policy.approvers or policy.approvals on the base branch, then retry",
		rule.Count(r.Needed(), "approval"), rule.Count(could, "person"))
}
