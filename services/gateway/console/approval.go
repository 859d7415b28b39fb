package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/files"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/others"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/phrase"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// A person approves what they see. So changes are approved on the page that shows them, and nowhere
// else; and that page has no button to approve where it shows anything but exactly the change that
// waits: another task, another attempt, a comparison, or what is not proven to be the whole.

// candidate is a change that waits for a person, with the page that shows it.
type candidate struct {
	document.Candidate
	Address string
	// Here says that its change is on this page.
	Here bool
}

// made reports whether changes that were made already wait for approval, and not a plan.
func made(d *document.Detail) bool { return d.Waiting == forge.WaitingApproval && !planned(d) }

// waiting returns the changes that the intent waits for a person's word on.
func (p *pending) waiting() (list []document.Candidate) {
	for _, c := range p.Detail.Candidates {
		if c.Waiting == p.Waiting {
			list = append(list, c)
		}
	}
	return list
}

// PlanHash returns the hash of the plan; empty while the hash is one of changes.
func (p *pending) PlanHash() string {
	if made(&p.Detail) {
		return ""
	}
	return p.Plan
}

// Kept tells how the change of a task, by its place in the plan, keeps to the
// files that its plan names. The inbox, which shows no change, does not say.
func (p *pending) Kept(task int) (k files.Kept) {
	if p.From == "inbox" {
		return k
	}
	return files.KeptTo(&p.Work, task)
}

// Changes says in words how many changes an approval is of; empty for a plan.
func (p *pending) Changes() string {
	switch n := len(p.waiting()); {
	case !made(&p.Detail):
		return ""
	case n == 1:
		return "this change"
	default:
		return fmt.Sprintf("these %d changes", n)
	}
}

// Shown returns a hash of the state that a page shows of a decision: the script
// of pages compares it before it puts anything in the place of something else.
func (p *pending) Shown() string {
	seen := url.Values{"status": {string(p.Status)}, "waiting": {string(p.Waiting)}, "plan": {p.Plan}, "run": {strconv.Itoa(p.Run)}}
	for _, q := range p.Asked {
		seen.Add("asked", phrase.Mark(q.Question))
	}
	return phrase.Mark(seen.Encode())
}

// Shown returns a hash of the state that the page shows, with the change.
func (c *changePage) Shown() string {
	if c.Task == nil {
		return c.pending.Shown()
	}
	return c.pending.Shown() + "-" + phrase.Mark(string(c.Task.ID)+" "+c.Task.PatchID+" "+c.Task.Head)
}

// candidates sets which changes wait, and what is decided on this page about them.
// Barred says that no requester may approve the one that its reviewers disagree about.
func (c *changePage) candidates(t *tokens.Token, barred bool) {
	for _, one := range c.waiting() {
		c.Waits = append(c.Waits, candidate{
			one, address(c.Path(), url.Values{"task": {string(one.Task)}}) + "#diff", c.Task != nil && one.Task == c.Task.ID,
		})
	}
	if made(&c.Detail) {
		if len(c.Waits) > 1 && c.Task != nil { // of several, changes are asked for of the one that is shown
			c.Only = c.Task.ID
		}
		if c.Withheld = c.unshown(); c.Withheld != "" {
			c.Offers = slices.DeleteFunc(c.Offers, func(o offer) bool { return o.Name == "approve" })
		}
	}
	name, _ := t.Holder()
	for i := range c.Asked {
		q := &c.Asked[i]
		if q.Decides == nil {
			continue
		}
		switch why := c.unshown(); {
		case q.Decides.PatchID != "" && (why != "" || c.Task.ID != q.Task):
			q.Barred = "It cannot be approved on this page. " + why
		case !t.May(c.Project, tokens.Approve):
			q.Barred = "Approving it takes the role approver."
		case barred && others.Requested(name, &c.Detail):
			q.Barred = others.Asked
		}
	}
}

// disputed returns the commit that a question is about; empty if it is about none.
func disputed(d *document.Detail, index int) string {
	for _, q := range questions(d, true) {
		if q.Index == index && q.Decides != nil {
			return q.Decides.Head
		}
	}
	return ""
}

// unshown says why this page does not show what an approval would be of; empty if it does.
func (c *changePage) unshown() string {
	i := slices.IndexFunc(c.Waits, func(w candidate) bool { return w.Here })
	cut := slices.ContainsFunc(c.Truncated, func(t document.Truncated) bool { return t.Field == "candidates" })
	switch {
	case len(c.Waits) == 0 || cut:
		return "It is not known here which changes wait for approval."
	case i < 0:
		return "The task that is shown here does not wait for it."
	case c.Change == nil:
		return "Its change cannot be shown."
	case c.Change.Since != nil:
		return "Below is a comparison, and not the change."
	case c.Change.PatchID != c.Waits[i].PatchID:
		return fmt.Sprintf("The change below is %.12s, of %s %d, and not %.12s.", c.Change.PatchID, c.Change.Step, c.Change.Attempt, c.Waits[i].PatchID)
	case c.Change.Hidden > 0:
		return fmt.Sprintf("%d lines of the change are not shown below, since they alter white space alone.", c.Change.Hidden)
	case !c.Change.Proven:
		return "The change that is shown is not proven to be complete."
	}
	return ""
}
