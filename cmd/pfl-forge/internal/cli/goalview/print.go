package goalview

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Print prints a goal in a format: its head, its iterations, and what can be done about
// it.
func Print(a *kit.App, d *Document, format render.Format) error {
	return a.Print(format, d, []string{string(d.ID)}, func() error {
		PrintHead(a, d)
		if err := PrintIterations(a, d); err != nil {
			return err
		}
		a.Commands(d.Commands)
		return nil
	})
}

// PrintIterations prints the iterations of a goal, the last judgment, and what was found
// out.
func PrintIterations(a *kit.App, d *Document) error {
	if len(d.Iterations) > 0 {
		a.Heading("iterations")
		if err := iterationsTable(a, d.Iterations); err != nil {
			return err
		}
	}
	printJudgment(a, d.Judgment)
	printKnowledge(a, d.Knowledge)
	return nil
}

// PrintHead prints how a goal is, and each of its criteria with what is judged of it.
func PrintHead(a *kit.App, d *Document) {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "%s  %s\n", style.Bold(string(d.ID)), kit.Safe(d.Title))
	a.Field("status", statusText(style, d))
	a.Field("iterations", iterationsText(d.Used, d.MaxIterations, d.Iteration))
	a.Field("used", render.Consumed(d.Tokens, d.CachedTokens, d.CostUSD))
	a.Field("commit", render.ShortCommit(d.Commit))
	a.Field("history", d.HistoryPath)
	a.Field("raw logs", d.RawLogDir)
	a.Heading("criteria")
	document.PrintCriteria(a, d.Criteria, d.Judgment != nil)
}

// statusText returns how a goal is, in the colour that says whether that is good.
func statusText(style render.Style, d *Document) string {
	switch d.Status {
	case string(forge.LoopCompleted):
		return style.Good(d.Status)
	case Running:
		return kit.WithReason(d.Status, term.Line(d.Activity))
	case Waiting:
		i := document.Item{Summary: model.Summary{Status: d.IntentStatus, Waiting: d.Waiting, Reason: d.Reason}}
		return style.Attention(i.Why())
	}
	why := d.Error
	if why == "" {
		why = d.Reason
	}
	return style.Bad(kit.WithReason(d.Status, term.Line(why)))
}

// iterationsText returns how many iterations of this run are used, such as "3 of 10", and
// how many there were in all runs.
func iterationsText(used, most, newest int) string {
	text := fmt.Sprintf("%d of %d", used, most)
	if newest > used {
		text += fmt.Sprintf(", %d in all", newest)
	}
	return text
}

// iterationsTable prints iterations as a table.
func iterationsTable(a *kit.App, list []iteration) error {
	columns := render.Columns{Header: []string{"NUMBER", "APPROACH", "RESULT", "MET", "TOKENS", "COST", "NEXT"}, Shrink: 6}
	for i := range list {
		it := &list[i]
		met := ""
		if it.Judgment != nil {
			met = fmt.Sprintf("%d/%d", it.Met, len(it.Judgment.Criteria))
		}
		columns.Add(fmt.Sprint(it.Number), term.Short(it.Approach, maxApproach), string(it.Result), met,
			render.Tokens(it.Tokens), render.Cost(it.CostUSD), it.next())
	}
	return a.Table(&columns)
}

// maxApproach bounds the column that does not give way, in bytes.
const maxApproach = 60

// printJudgment prints the last judgment, if there was one.
func printJudgment(a *kit.App, j *judgment) {
	if j == nil {
		return
	}
	a.Heading("last judgment")
	text := "not complete"
	if j.Complete {
		text = "complete"
	}
	fmt.Fprintln(a.Out, kit.Indent(kit.WithReason(text, kit.Safe(j.Reason)), "  "))
	if next := kit.Safe(j.NextAction); next != "" {
		fmt.Fprintln(a.Out, kit.Indent("next: "+next, "  "))
	}
}

// printKnowledge prints the knowledge that a goal found out, if there is any.
func printKnowledge(a *kit.App, list []knowledge) {
	if len(list) == 0 {
		return
	}
	a.Heading("found out")
	for i := range list {
		k := &list[i]
		fmt.Fprintln(a.Out, kit.Indent(fmt.Sprintf("%s, %s: %s", k.Type, term.Line(k.Category), kit.Safe(k.Content)), "  "))
	}
}
