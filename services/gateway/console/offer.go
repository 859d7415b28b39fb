package console

import (
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/others"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// offer is a decision that a person can take, as a form.
type offer struct {
	// Name says which one it is, in the form, and Label what stands on its button.
	Name, Label string
	Verb        tokens.Verb // that of the API
	Next        string      // the consequences of taking it
	// Field is the kind of text that the person types: words, needed words, or
	// an amount; empty for nothing.
	Field string
	Ask   string // the label of the field
	Key   string // takes it at the keyboard
	Look  string // the address of the page on which it can be taken, where that is another one; empty for here
	// fits reports whether it is offered for an intent as that is now.
	fits func(*document.Detail) bool
}

// The kinds of fields of an offer.
const (
	fieldNone   = ""
	fieldWords  = "words"
	fieldNeeded = "needed"
	fieldAmount = "amount"
)

// waitsFor returns a condition: the intent waits for one of these.
func waitsFor(list ...forge.Waiting) func(*document.Detail) bool {
	return func(d *document.Detail) bool { return slices.Contains(list, d.Waiting) }
}

// planned reports whether a plan, or the text before there is one, waits for approval, and not
// a change that was made already.
func planned(d *document.Detail) bool {
	return d.Waiting == forge.WaitingApproval && d.Status == forge.StatusProposed
}

// unplanned reports whether it waits for approval that the text is analyzed.
func unplanned(d *document.Detail) bool { return planned(d) && d.Tasks == 0 && len(d.Parts) == 0 }

// offers are all decisions about an intent but the answers to its questions. What is offered
// is not more than the rules take: they decide.
var offers = []offer{
	{
		Name: "approve", Label: "Let it be analyzed", Verb: tokens.Approve, Key: "a", fits: unplanned,
		Next: "Exactly this text is analyzed. Its plan waits for approval again, where the policy says so.",
	},
	{
		Name: "approve", Label: "Approve this plan", Verb: tokens.Approve, Key: "a",
		fits: func(d *document.Detail) bool { return planned(d) && !unplanned(d) },
		Next: "You approve exactly what is shown, with this hash. When enough people have approved it, agents begin, and their change is merged " +
			"once it is verified and reviewed by agents: no person sees it before, unless it changes protected paths, or its reviewers disagree.",
	},
	{
		Name: "approve", Label: "Approve", Verb: tokens.Approve, Key: "a",
		Next: "Exactly what is shown is approved: the hash is made of the patch of each change that waits. " +
			"It is verified and reviewed already: when enough people have approved it, it is merged, " +
			"and no person is asked once more unless it has to be changed for that.",
		fits: made,
	},
	{
		Name: "changes", Label: "Ask for changes", Verb: tokens.Change, Key: "c", Field: fieldNeeded, Ask: "What should be different",
		fits: func(d *document.Detail) bool { return made(d) || planned(d) && !unplanned(d) },
		Next: "It is made again in the same conversation, with your words, and waits again if the rules say so. Earlier approvals " +
			"no longer count. It uses no attempt. " + others.Joins,
	},
	{
		Name: "change", Label: "Change the request", Verb: tokens.Edit, Key: "e", Field: fieldNeeded, Ask: "What should be added", fits: planned,
		Next: "Your words are added to the request, for good. An existing plan is dropped, and the request is analyzed again from the beginning; first it " +
			"waits for an approval of its new text, if the old one had to. " + others.Joins,
	},
	{
		Name: "retry", Label: "Run again", Verb: tokens.Retry, Key: "t", Field: fieldWords, Ask: "Instructions, if any",
		fits: waitsFor(forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBase, forge.WaitingPull),
		Next: "What failed or waits is run again, and agents get your instructions. With instructions: " + others.Joins,
	},
	{
		Name: "budget", Label: "Raise the budget", Verb: tokens.Retry, Key: "t", Field: fieldAmount,
		Ask:  "New total in US dollars; empty to look at the project's limits once more",
		fits: func(d *document.Detail) bool { return d.Waiting == forge.WaitingBudget && d.Parent == "" }, // a child has its parent's
		Next: "It continues as far as the new budget, and the limits of the project, allow. Without an amount its own budget stays as it is.",
	},
	{
		Name: "resume", Label: "Resume", Verb: tokens.Resume, Key: "u", fits: waitsFor(forge.WaitingPaused),
		Next: "Agents continue where they stopped, if it is this intent that was paused. A pause of the whole project, or a wait for an account, is ended " +
			"for the project: pfl-forge resume --all.",
	},
	{
		Name: "reject", Label: "Reject", Verb: tokens.Reject, Key: "r", Field: fieldWords, Ask: "Reason",
		fits: waitsFor(forge.WaitingApproval, forge.WaitingClarification, forge.WaitingFailed),
		Next: "The intent ends as rejected, for good. What is merged stays.",
	},
	{
		Name: "cancel", Label: "Cancel", Verb: tokens.Cancel, Field: fieldWords, Ask: "Reason",
		fits: waitsFor(forge.WaitingDirty, forge.WaitingBase, forge.WaitingPull, forge.WaitingBudget, forge.WaitingPaused),
		Next: "The intent ends as cancelled, for good. What is merged stays.",
	},
}

// offersFor returns the decisions that the holder of a token may take about an intent.
func offersFor(t *tokens.Token, d *document.Detail) (list []offer) {
	for i := range offers {
		if o := &offers[i]; o.fits(d) && t.May(d.Project, o.Verb) && (o.Verb != tokens.Approve || objection(t, d) == "") {
			one := *o
			one.Next = strings.Replace(one.Next, others.Joins, others.Joining(d), 1)
			if name, _ := t.Holder(); o.Verb == tokens.Approve && d.Approvals != nil && others.Requested(name, d) {
				one.Next = others.Free + one.Next
			}
			list = append(list, one)
		}
	}
	return list
}

// mine reports whether the holder of a token may decide something about an intent that waits.
func mine(t *tokens.Token, s *document.State) bool {
	d := document.Detail{State: *s}
	return len(offersFor(t, &d)) > 0 || s.Waiting == forge.WaitingClarification && t.May(s.Project, tokens.Answer)
}

// objection says why an approval of the holder would not count; empty if it would, as far as
// the intent's state says. The rules decide.
func objection(t *tokens.Token, d *document.Detail) string {
	name, _ := t.Holder()
	return others.Objection(name, d)
}

// question is one that waits for an answer.
type question struct {
	document.Clarification
	Index int // its place among all that were asked
	// Decides is the change whose reviewers disagree: the answer decides about it. It is nil for
	// all other questions.
	Decides *document.Candidate
	// Barred says why it cannot be approved, and Look is the address of the page that shows it.
	Barred, Look string
	Changes      bool // the person may ask for changes of it
}

// questions returns those that wait for an answer; changes says that the person
// may ask for changes of what they are about.
func questions(d *document.Detail, changes bool) (list []question) {
	if d.Waiting != forge.WaitingClarification {
		return nil
	}
	for i, c := range d.Questions {
		if c.Answer != nil {
			continue
		}
		q := question{Clarification: c, Index: i, Changes: changes}
		for n := range d.Candidates {
			if one := &d.Candidates[n]; one.Waiting == forge.WaitingClarification && one.Task == c.Task {
				q.Decides = one
			}
		}
		list = append(list, q)
	}
	return list
}
