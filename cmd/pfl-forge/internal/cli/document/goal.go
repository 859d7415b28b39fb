package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
)

// PrintCriteria prints criteria with what the last judgment says of them, and without that
// if there was none.
func PrintCriteria(a *kit.App, list []Claim, judged bool) {
	for i := range list {
		if judged {
			printClaim(a, &list[i])
		} else {
			fmt.Fprintln(a.Out, hanging("  -        ", kit.Safe(list[i].Text)))
		}
	}
}

// criterionIndent is the column in which the text of a criterion begins.
const criterionIndent = 11

// hanging returns a text after a mark, its further lines below its first one.
func hanging(mark, text string) string {
	return mark + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", criterionIndent))
}

// GoalLine returns in a line how far a goal is, such as "iteration 2 of 10, 1 of 3
// criteria met", and nothing for an intent that is no goal.
func GoalLine(g *document.GoalProgress) string {
	if g == nil {
		return ""
	}
	return render.Goal(&forge.GoalSummary{Used: g.Used, Most: g.MaxIterations, Met: g.Met, Criteria: g.Criteria, Status: g.Status})
}

// CriteriaOf returns every criterion of a goal in its order, with what the last judgment
// says of it.
func CriteriaOf(g *forge.GoalView) []Claim {
	list := []Claim{}
	last := g.FinalJudgment()
	for i, text := range g.Text {
		c := Claim{Number: i + 1, Text: text, Evidence: []Citation{}}
		if last != nil && i < len(last.Claims) && last.Claims[i].Text == text {
			c = document.ClaimOf(&last.Claims[i])
		}
		list = append(list, c)
	}
	return list
}
