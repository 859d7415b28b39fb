package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
)

// review returns a verdict with the first issue, and whether that is good news. An approval
// whose evidence code did not find is none: the rules have the change made again, and the line
// says why.
func review(r *forge.Review) (string, Tone) {
	text, tone := verdictLine(r)
	if r.Second { // of the first, the line of its step says enough
		text = Reviewer(r.By, true) + ": " + text
	}
	return text, tone
}

// Reviewer returns who made a review: "claude with opus", or "the second reviewer, codex".
func Reviewer(by forge.Reviewer, second bool) string {
	name := config.Named(by)
	if second {
		name = "the second reviewer, " + name
	}
	return name
}

// verdictLine returns that without the name of the reviewer.
func verdictLine(r *forge.Review) (string, Tone) {
	if r.Verdict == "" { // it asks before it gives one
		var names []string
		for i := range r.Asked {
			names = append(names, r.Asked[i].Name)
		}
		return "asks for " + term.Short(strings.Join(names, ", "), 200), Plain
	}
	if r.Verdict == forge.VerdictApproved {
		if why := notShown("requirement", r.Claims); why != "" {
			return "approved, but " + term.Short(why, 200), Bad
		}
		return "approved", Good
	}
	text := "rejected"
	if len(r.Issues) > 0 {
		issue := r.Issues[0]
		if strings.HasSuffix(FirstLine(issue), ":") { // what a check printed
			issue = cause.Gist(issue)
		}
		text += ": " + term.Short(issue, 200)
	}
	return text, Bad
}

// notShown returns the first requirement, or what the noun calls it, that claims do not show to be
// met, with the reason; empty if there is none.
func notShown(noun string, claims []forge.Claim) string {
	for i := range claims {
		c := &claims[i]
		switch holds := slices.IndexFunc(c.Evidence, func(e forge.Citation) bool { return e.Resolved }); {
		case !c.Met:
			return fmt.Sprintf("%s %d is not met: %s", noun, c.Number, FirstLine(c.Note))
		case holds < 0 && len(c.Evidence) > 0:
			return fmt.Sprintf("nothing shows %s %d: %s", noun, c.Number, FirstLine(c.Evidence[0].Reason))
		case holds < 0:
			return fmt.Sprintf("nothing shows %s %d: no evidence was given", noun, c.Number)
		}
	}
	return ""
}
