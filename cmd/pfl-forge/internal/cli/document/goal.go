package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
)

// Evaluation is a criterion of a goal with what a judgment says of it. A criterion that no
// judgment speaks of is not met, with no evidence and no confidence.
type Evaluation struct {
	Criterion  string  `json:"criterion"  yaml:"criterion"`
	Met        bool    `json:"is_met"     yaml:"is_met"`
	Evidence   string  `json:"evidence"   yaml:"evidence"`
	Confidence float64 `json:"confidence" yaml:"confidence"`
}

// PrintCriteria prints criteria with what the last judgment says of them, and without that
// if there was none.
func PrintCriteria(a *kit.App, list []Evaluation, judged bool) {
	style := a.Style(a.Out)
	for i := range list {
		e := &list[i]
		text := kit.Safe(e.Criterion)
		if !judged {
			fmt.Fprintln(a.Out, hanging("  -        ", text))
			continue
		}
		text += fmt.Sprintf(" (confidence %.2f)", e.Confidence)
		if e.Met {
			fmt.Fprintln(a.Out, hanging("  "+style.Good("met")+"      ", text))
		} else {
			fmt.Fprintln(a.Out, hanging("  "+style.Bad("not met")+"  ", text))
		}
		if evidence := kit.Safe(e.Evidence); evidence != "" {
			fmt.Fprintln(a.Out, style.Faint(kit.Indent(evidence, strings.Repeat(" ", criterionIndent))))
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
func CriteriaOf(g *forge.GoalView) []Evaluation {
	list := []Evaluation{}
	last := g.FinalJudgment()
	for i, text := range g.Text {
		e := Evaluation{Criterion: text}
		if last != nil && i < len(last.Evaluations) && last.Evaluations[i].Criterion == text {
			e = Evaluation(last.Evaluations[i])
		}
		list = append(list, e)
	}
	return list
}
