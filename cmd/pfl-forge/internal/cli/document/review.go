package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

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
