package rule

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Bounds of the claims that a decision keeps, in bytes and entries.
const (
	maxNote      = 1000 // of a note or a reason
	maxQuote     = 300  // of a quote, a reference, or a reason
	maxCitations = 10   // pieces of evidence of a claim
)

// Verdict weighs claims against what was asked. It returns them in that order and at a size
// that can be kept, and, for people and the next attempt, why not all of it is shown to be met:
// in the words of the model, and what code found. Both are empty if it is. noun names one entry
// of asked: Requirement or Criterion.
func Verdict(noun string, asked []string, claims []forge.Claim, least float64) (weighed []forge.Claim, said, found []string) {
	weighed, against := verdict.Weigh(asked, claims, least)
	said, found = verdict.Shortfalls(weighed)
	found = append(found, against...)
	for _, list := range [][]string{said, found} {
		for i := range list {
			list[i] = noun + " " + list[i]
		}
	}
	for i := range weighed {
		bound(&weighed[i])
	}
	return weighed, said, found
}

// bound cuts the texts and lists of a claim, whose evidence is its own.
func bound(c *forge.Claim) {
	c.Note, c.Unproven = valid(c.Note, maxNote), valid(c.Unproven, maxNote)
	c.Evidence = c.Evidence[:min(len(c.Evidence), maxCitations)]
	if c.Run != nil {
		run := *c.Run
		run.Command, run.Output = valid(run.Command, maxNote), tail(run.Output, maxNote)
		c.Run = &run
	}
	for i := range c.Evidence {
		e := &c.Evidence[i]
		e.Ref, e.Quote, e.Reason = valid(e.Ref, maxQuote), valid(e.Quote, maxQuote), valid(e.Reason, maxQuote)
	}
}

// tail returns the end of a text.
func tail(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-most:], "")
}

// valid returns a text of at most so many bytes, cut between characters.
func valid(text string, most int) string { return strings.ToValidUTF8(Shorten(text, most), "") }

// Stands reports whether one of the claims has evidence of something that the change did.
func Stands(claims []forge.Claim) bool {
	return slices.ContainsFunc(claims, func(c forge.Claim) bool {
		return slices.ContainsFunc(c.Evidence, func(e forge.Citation) bool { return e.Resolved && !e.Unchanged })
	})
}
