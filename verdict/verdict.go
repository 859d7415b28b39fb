// Package verdict compares the claims of a verdict with what was asked, and
// makes claims of the commands that decide criteria. Workers and rules share
// it, so that a proof never says more than the rules do.
//
// Weigh says which claims of a review or judgment count, OfChecks turns runs of commands
// into claims, and Blame with its neighbours says from the trials of a failed verify whether
// the change, the base branch or the command is at fault. It is pure, and its results are in
// journals: an altered decision here takes a new version of the rules (internal/rules).
package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// weakness returns why a claim does not count; empty if it does.
func weakness(c *forge.Claim, least float64) string {
	switch {
	case !c.Met, c.Run != nil:
		return ""
	case !(c.Confidence >= least && c.Confidence <= 1): // NaN is neither
		return fmt.Sprintf("its confidence is %.2f; at least %.2f is needed", c.Confidence, least)
	case len(c.Evidence) == 0:
		return "it has no evidence"
	}
	var wrong []string
	for i := range c.Evidence {
		if e := &c.Evidence[i]; !e.Resolved {
			why := e.Reason
			if why == "" {
				why = "nobody looked it up"
			}
			wrong = append(wrong, cut(e.String())+": "+cut(why))
		}
	}
	if len(wrong) > 0 {
		return strings.Join(wrong, "; ")
	}
	return ""
}

// mark stands in a claim in place of what looks like a secret in its requirement. Results
// reach the rules without secrets; requirements are as a person wrote them.
const mark = "[redacted]"

// says reports whether a claim's text is that of a requirement, apart from what was
// taken out of it.
func says(text, asked string) bool {
	first, rest, taken := strings.Cut(text, mark)
	if !taken {
		return text == asked
	}
	asked, begins := strings.CutPrefix(asked, first)
	if !begins {
		return false
	}
	pieces := strings.Split(rest, mark)
	last := len(pieces) - 1
	for _, piece := range pieces[:last] {
		at := strings.Index(asked, piece)
		if at < 0 {
			return false
		}
		asked = asked[at+len(piece):]
	}
	return strings.HasSuffix(asked, pieces[last])
}

// cut returns at most as much of a text as a reason repeats of it.
func cut(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// Weigh returns the claims in the order of what was asked, each with the reason why
// it does not count, and what speaks against the whole: what was answered twice or not
// asked. The requirements or criteria are all met if every claim counts
// and nothing speaks against the whole.
func Weigh(asked []string, claims []forge.Claim, least float64) (weighed []forge.Claim, against []string) {
	if least <= 0 {
		least = forge.DefaultMinConfidence
	}
	for i, text := range asked {
		number := i + 1
		of := func(c forge.Claim) bool { return c.Number == number }
		at := slices.IndexFunc(claims, of)
		if at < 0 {
			weighed = append(weighed, forge.Claim{Number: number, Text: text, Unproven: "it was left out"})
			continue
		}
		if slices.ContainsFunc(claims[at+1:], of) {
			against = append(against, fmt.Sprintf("%d was answered more than once: %s", number, text))
		}
		c := claims[at]
		c.Evidence = slices.Clone(c.Evidence)
		c.Unproven = weakness(&c, least)
		if !says(c.Text, text) {
			c.Text, c.Unproven = text, "it is about something else: "+cut(c.Text)
		}
		weighed = append(weighed, c)
	}
	for i := range claims {
		if n := claims[i].Number; n < 1 || n > len(asked) {
			against = append(against, fmt.Sprintf("%d was not asked", n))
		}
	}
	return weighed, against
}

// Shortfalls returns, a line for each, which of weighed claims do not count: said are those
// that are not met in the model's own words, found those that code does not let count, with
// the reason.
func Shortfalls(weighed []forge.Claim) (said, found []string) {
	for i := range weighed {
		c := &weighed[i]
		switch {
		case c.Counts():
		case c.Unproven != "":
			found = append(found, fmt.Sprintf("%d is not shown to be met (%s): %s", c.Number, c.Text, c.Unproven))
		default:
			said = append(said, strings.TrimSuffix(fmt.Sprintf("%d is not met (%s): %s", c.Number, c.Text, c.Note), ": "))
		}
	}
	return said, found
}
