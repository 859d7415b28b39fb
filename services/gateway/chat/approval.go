package chat

import (
	"fmt"
	"strings"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/concealed"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/proposed"
)

// A person approves what they see. A message that has a button for that shows all that the
// hash is of, and nothing of it is cut: neither here nor by the chat. Where that does not
// fit, or has a secret in it, the message says where all of it is, and what to type there.

const (
	// maxAll bounds the text of a message with such a button, and maxAllLine a
	// line of it, in characters as weigh counts them. Package slack has room
	// for as much in its three sections, however the lines fall.
	maxAll     = 5500
	maxAllLine = 1000
	// maxBeginning is how many lines are shown of what does not fit.
	maxBeginning = 12
)

// offerApproval adds the request and the plan that wait for approval, and the buttons for
// that. Changes that were made are approved where a person sees them, which is not here.
func (n *Notice) offerApproval(d *document.Detail, words Words, add func(Do, string, Button)) {
	switch {
	case d.Plan == "":
		return
	case made(d):
		n.Lines = append(n.Lines, "Changes are approved in the console, where they are shown.")
		add(Changes, "Ask for changes", Button{})
		return
	}
	whole, planned := n.propose(d, words), proposed.IsPlanned(d)
	switch {
	case !whole:
		n.Lines = append(n.Lines, fmt.Sprintf("Not all that is approved can be shown here. Read all of it in the console or with `pfl-forge show %s`, "+
			"and approve it there or with `pfl-forge approve %s --plan <hash>`.", d.Intent, d.Intent))
	case planned:
		add(Approve, "Approve", Button{Good: true, Confirm: "Exactly the plan with this hash is approved."})
	default:
		add(Approve, "Let it be analyzed", Button{Good: true, Confirm: "Exactly the text with this hash is analyzed."})
	}
	if planned {
		add(Changes, "Ask for changes", Button{})
	}
}

// approvals adds how many there are and the hash of what they are of.
func (n *Notice) approvals(d *document.Detail, words Words) {
	if d.Waiting != forge.WaitingApproval {
		return
	}
	if a := d.Approvals; a != nil {
		text := fmt.Sprintf("%d of %d approvals", len(a.Given), a.Needed)
		if len(a.Given) > 0 {
			text += ": " + words.line(strings.Join(a.Given, ", "), maxTitle)
		}
		n.Lines = append(n.Lines, text)
	}
	if d.Plan != "" {
		n.Lines = append(n.Lines, "Hash of what is to be approved: "+d.Plan[:min(len(d.Plan), 12)])
	}
}

// propose adds the request and its plan, and reports whether all of both is there.
func (n *Notice) propose(d *document.Detail, words Words) (whole bool) {
	n.approvals(d, words)
	n.conceal(d, words)
	text := "The request:\n" + strings.TrimSpace(proposed.Request(d))
	if proposed.IsPlanned(d) {
		text += "\nThe plan:\n" + proposed.Plan(d)
	}
	text, whole = words.whole(text)
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	all, widest := 0, 0
	for _, list := range [][]string{n.Hidden, n.Lines, lines} {
		for _, line := range list {
			all += weigh(line) + 1
			widest = max(widest, weigh(line))
		}
	}
	if whole = whole && proposed.IsWhole(d) && all <= maxAll && widest <= maxAllLine; whole {
		n.Lines = append(n.Lines, lines...)
		return true
	}
	for i, line := range lines {
		if i == maxBeginning {
			n.Lines = append(n.Lines, fmt.Sprintf("… and %d more lines", len(lines)-i))
			break
		}
		n.Lines = append(n.Lines, words.line(line, maxTitle))
	}
	return false
}

// whole returns words of which each character can be seen, and reports whether they are all there.
func (w Words) whole(s string) (string, bool) {
	if w.Secrets == nil {
		w.Secrets = redact.New()
	}
	return intake.Whole(s, w.Secrets)
}

// weigh returns the length of a text in characters, where a chat spells out
// those that could begin something, as Slack does.
func weigh(s string) int {
	return utf8.RuneCountInString(s) + 4*strings.Count(s, "&") + 3*strings.Count(s, "<") + 3*strings.Count(s, ">")
}

// conceal adds the parts that a page of a forge does not show of the request.
// Whoever has read it there has not seen them.
func (n *Notice) conceal(d *document.Detail, words Words) {
	list := concealed.In(d.Title, d.Body)
	if len(list) == 0 {
		return
	}
	n.Hidden = append(n.Hidden, "The request has text that its page does not show, and agents get:")
	for i := range list {
		if i == maxHidden {
			n.Hidden = append(n.Hidden, fmt.Sprintf("… and %d more parts", len(list)-i))
			break
		}
		n.Hidden = append(n.Hidden, words.line(list[i].String(), maxPart))
	}
}
