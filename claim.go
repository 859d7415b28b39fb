package forge

import (
	"fmt"
	"slices"
	"strings"
)

// Claim is the word of a reviewer on one requirement of a task, or of a judge on
// one criterion of a goal. It counts only as far as its evidence resolves.
type Claim struct {
	// Number is that of the requirement or criterion, from 1.
	Number int
	// Text repeats the requirement or criterion; empty if nothing has that number.
	Text string
	// Met says whether it is met, in the model's word.
	Met bool
	// Confidence is how certain the model is of Met, 0 to 1.
	Confidence float64
	// Note says in words what was seen, or what is missing.
	Note string
	// Evidence are the pieces that the model cites.
	Evidence []Citation
	// Unproven says why the claim does not count although it says met. Only the
	// rules set it; empty until they did, and if it counts.
	Unproven string
}

// CitationKind says what a citation refers to.
type CitationKind string

// The kinds of citations.
const (
	CitationCommand CitationKind = "command" // a run of one of the project's commands on the judged tree, which passed
	CitationFile    CitationKind = "file"    // lines of a file of the judged tree
	CitationDiff    CitationKind = "diff"    // lines that the change adds or removes
	CitationAbsence CitationKind = "absence" // a path or text that the judged tree does not have
)

// CitationKinds lists the kinds of citations.
func CitationKinds() []CitationKind {
	return []CitationKind{CitationCommand, CitationFile, CitationDiff, CitationAbsence}
}

// Citation is one piece of evidence of a claim. Code looks it up in exactly the tree
// that is judged.
type Citation struct {
	// Kind says what Ref refers to.
	Kind CitationKind
	// Ref is path:line or path:from-to, the name or id of a run, or the path that
	// is absent or searched.
	Ref string
	// Quote is the text that stands there, or that must not stand anywhere below Ref.
	Quote string
	// Resolved says that code found it as it is cited.
	Resolved bool
	// Reason says why it was not found; empty if it was, or has not been looked up yet.
	Reason string
	// Unchanged says that it was so before the change, too: by itself it shows
	// nothing of what the change does.
	Unchanged bool
}

// String returns the citation on one line: "file a.go:12".
func (c *Citation) String() string { return string(c.Kind) + " " + c.Ref }

// DefaultMinConfidence is the confidence that a claim needs where the project says
// nothing.
const DefaultMinConfidence = 0.7

// Counts reports whether the rules let the claim stand for its requirement or criterion.
func (c *Claim) Counts() bool { return c.Met && c.Unproven == "" }

// weakness returns why a claim does not count; empty if it does.
func (c *Claim) weakness(least float64) string {
	switch {
	case !c.Met:
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
func Weigh(asked []string, claims []Claim, least float64) (weighed []Claim, against []string) {
	if least <= 0 {
		least = DefaultMinConfidence
	}
	for i, text := range asked {
		number := i + 1
		of := func(c Claim) bool { return c.Number == number }
		at := slices.IndexFunc(claims, of)
		if at < 0 {
			weighed = append(weighed, Claim{Number: number, Text: text, Unproven: "it was left out"})
			continue
		}
		if slices.ContainsFunc(claims[at+1:], of) {
			against = append(against, fmt.Sprintf("%d was answered more than once: %s", number, text))
		}
		c := claims[at]
		c.Evidence = slices.Clone(c.Evidence)
		c.Unproven = c.weakness(least)
		if c.Text != text {
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
func Shortfalls(weighed []Claim) (said, found []string) {
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
