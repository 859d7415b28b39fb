package cli

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// printGoal prints everything about a goal's loop.
func (a *app) printGoal(d *goalDoc, format render.Format) error {
	switch {
	case format.Data():
		return format.Write(a.out, d)
	case format == render.Name:
		fmt.Fprintln(a.out, d.ID)
		return nil
	}
	a.printGoalHead(d)
	if err := a.printTurns(d); err != nil {
		return err
	}
	if len(d.Commands) > 0 {
		a.heading("what you can do")
		for _, c := range d.Commands {
			fmt.Fprintf(a.out, "  > %s\n", c)
		}
	}
	return nil
}

// printLoop prints the criteria of an intent, and how far it is with them if it is a
// goal.
func (a *app) printLoop(d *detail) error {
	if d.Loop == nil {
		if len(d.Criteria) > 0 {
			a.heading("criteria")
		}
		for _, c := range d.Criteria {
			fmt.Fprintln(a.out, indent(safe(c), "  "))
		}
		return nil
	}
	a.heading("criteria")
	a.printCriteria(d.Loop.Criteria, d.Loop.Judgment != nil)
	return a.printTurns(d.Loop)
}

// printTurns prints the iterations of a goal, and what came of them.
func (a *app) printTurns(d *goalDoc) error {
	if len(d.Iterations) > 0 {
		a.heading("iterations")
		if err := a.printIterations(d.Iterations); err != nil {
			return err
		}
	}
	a.printJudgment(d.Judgment)
	a.printKnowledge(d.Knowledge)
	return nil
}

// printGoalHead prints how a goal is, and each of its criteria.
func (a *app) printGoalHead(d *goalDoc) {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "%s  %s\n", style.Bold(string(d.ID)), safe(d.Title))
	a.field("status", goalTone(style, d))
	a.field("iterations", iterationsText(d.Used, d.MaxIterations, d.Iteration))
	a.field("used", render.Consumed(&forge.Usage{InputTokens: d.Tokens, CostUSD: d.CostUSD}))
	a.field("commit", render.ShortCommit(d.Commit))
	a.field("history", d.HistoryPath)
	a.field("raw logs", d.RawLogDir)
	a.heading("criteria")
	a.printCriteria(d.Criteria, d.Judgment != nil)
}

// goalTone says how a goal is, in the colour of that.
func goalTone(style render.Style, d *goalDoc) string {
	switch d.Status {
	case string(forge.LoopCompleted):
		return style.Good(d.Status)
	case goalRunning:
		return withReason(d.Status, term.Line(d.Activity))
	case goalWaiting:
		e := entry{item: item{Status: d.IntentStatus, Waiting: d.Waiting, Reason: d.Reason}}
		return style.Attention(e.why())
	}
	why := d.Error
	if why == "" {
		why = d.Reason
	}
	return style.Bad(withReason(d.Status, term.Line(why)))
}

// iterationsText says "3 of 10", and how many there were before this run.
func iterationsText(used, most, newest int) string {
	text := fmt.Sprintf("%d of %d", used, most)
	if newest > used {
		text += fmt.Sprintf(", %d in all", newest)
	}
	return text
}

// printCriteria prints criteria with what the last judgment says of them.
func (a *app) printCriteria(list []evaluation, judged bool) {
	style := a.style(a.out)
	for i := range list {
		e := &list[i]
		text := safe(e.Criterion)
		if !judged {
			fmt.Fprintln(a.out, hanging("  -        ", text))
			continue
		}
		text += fmt.Sprintf(" (confidence %.2f)", e.Confidence)
		if e.Met {
			fmt.Fprintln(a.out, hanging("  "+style.Good("met")+"      ", text))
		} else {
			fmt.Fprintln(a.out, hanging("  "+style.Bad("not met")+"  ", text))
		}
		if evidence := safe(e.Evidence); evidence != "" {
			fmt.Fprintln(a.out, style.Faint(indent(evidence, strings.Repeat(" ", criterionIndent))))
		}
	}
}

// criterionIndent is where the text of a criterion begins.
const criterionIndent = 11

// hanging puts the further lines of a text under its first one.
func hanging(mark, text string) string {
	return mark + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", criterionIndent))
}

func (a *app) printIterations(list []iteration) error {
	columns := render.Columns{Header: []string{"NUMBER", "APPROACH", "RESULT", "MET", "TOKENS", "COST", "NEXT"}, Shrink: 6}
	for i := range list {
		it := &list[i]
		met := ""
		if it.Judgment != nil {
			met = fmt.Sprintf("%d/%d", it.Met, len(it.Judgment.Evaluations))
		}
		columns.Add(fmt.Sprint(it.Number), term.Short(it.Approach, maxApproach), string(it.Result), met,
			render.Tokens(it.Tokens), render.Cost(it.CostUSD), it.next())
	}
	return columns.Write(a.out, width(a.out), a.style(a.out))
}

// maxApproach bounds the column that does not give way, in bytes.
const maxApproach = 60

func (a *app) printJudgment(j *judgment) {
	if j == nil {
		return
	}
	a.heading("last judgment")
	text := "not complete"
	if j.Complete {
		text = "complete"
	}
	fmt.Fprintln(a.out, indent(withReason(text, safe(j.Reason)), "  "))
	if next := safe(j.NextAction); next != "" {
		fmt.Fprintln(a.out, indent("next: "+next, "  "))
	}
}

func (a *app) printKnowledge(list []knowledge) {
	if len(list) == 0 {
		return
	}
	a.heading("found out")
	for i := range list {
		k := &list[i]
		fmt.Fprintln(a.out, indent(fmt.Sprintf("%s, %s: %s", k.Type, term.Line(k.Category), safe(k.Content)), "  "))
	}
}

// goalLine says in a line how far a goal is: "iteration 2 of 10, 1 of 3 criteria met".
func goalLine(g *goalShort) string {
	if g == nil {
		return ""
	}
	return render.Goal(&forge.GoalSummary{Used: g.Used, Most: g.MaxIterations, Met: g.Met, Criteria: g.Criteria, Status: g.Status})
}
