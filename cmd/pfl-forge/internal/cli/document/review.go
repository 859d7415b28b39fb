package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Review is the verdict of one review of a task, on the commit that was its head then.
type Review struct {
	Attempt     int           `json:"attempt"               yaml:"attempt"`
	Head        string        `json:"head"                  yaml:"head"`
	Verdict     forge.Verdict `json:"verdict"               yaml:"verdict"`
	Claims      []Claim       `json:"requirements"          yaml:"requirements"` // empty for the check of a recipe
	Issues      []string      `json:"issues,omitempty"      yaml:"issues,omitempty"`
	Suggestions []string      `json:"suggestions,omitempty" yaml:"suggestions,omitempty"`
	Agent       string        `json:"agent,omitempty"       yaml:"agent,omitempty"`  // who made it; empty for the check of a recipe
	Model       string        `json:"model,omitempty"       yaml:"model,omitempty"`  // the one that it was asked for
	Second      bool          `json:"second,omitempty"      yaml:"second,omitempty"` // it is the second reviewer's
	Checks      []Check       `json:"checks,omitempty"      yaml:"checks,omitempty"` // that it asked for
}

// ReviewsOf returns the reviews of a task, the oldest first.
func ReviewsOf(v *forge.View, id forge.TaskID) []Review {
	var list []Review
	for i := range v.Reviews {
		if r := &v.Reviews[i]; r.TaskID == id {
			list = append(list, Review{
				r.Attempt, r.Head, r.Verdict, ClaimsOf(r.Claims), r.Issues, r.Suggestions, r.By.Agent, r.By.Model, r.Second, ChecksOf(r.Asked),
			})
		}
	}
	return list
}

// PrintReview prints a review with its claims, issues and suggestions.
func PrintReview(a *kit.App, r *Review) {
	by := ""
	if r.Agent != "" {
		by = " by " + kit.Safe(render.Reviewer(forge.Reviewer{Agent: r.Agent, Model: r.Model}, r.Second))
	}
	fmt.Fprintf(a.Out, "  attempt %d, %s: %s%s\n", r.Attempt, render.ShortCommit(r.Head), r.Verdict, by)
	for _, c := range r.Checks {
		state := "passed"
		if !c.Passed {
			state = fmt.Sprintf("did not pass, exit status %d", c.ExitCode)
		}
		fmt.Fprintf(a.Out, "    asked for check %s (%s): %s\n", kit.Safe(c.Name), c.ID, state)
	}
	for i := range r.Claims {
		printClaim(a, &r.Claims[i])
	}
	for _, issue := range r.Issues {
		fmt.Fprintln(a.Out, "    - "+strings.TrimPrefix(kit.Indent(kit.Safe(issue), "      "), "      "))
	}
	for _, s := range r.Suggestions {
		fmt.Fprintln(a.Out, kit.Indent("suggestion: "+kit.Safe(s), "    - "))
	}
}
