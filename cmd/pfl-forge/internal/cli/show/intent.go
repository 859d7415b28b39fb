package show

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// printIntent prints everything about an intent but its journal. First comes
// why it waits, and what for, which a person has to know to decide; after the
// text the questions and the plan; last what happened before. A reason is said
// once: what the head has said is left out of the tasks and runs below, and what those say, which
// said has in the end, of the history.
func printIntent(a *kit.App, d *Intent, said *document.Said) error {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "%s  %s\n", style.Bold(string(d.ID)), kit.Safe(d.Title))
	a.Field("status", string(d.Status))
	if d.Waiting != "" {
		a.Field("waits", style.Attention(d.Why()))
	} else {
		a.Field("now", kit.Safe(d.Activity))
		a.Field("reason", kit.Safe(render.FirstLine(d.Reason)))
	}
	said.Add(render.FirstLine(d.Reason))
	for _, f := range d.Failures {
		a.Field("failure", f.String())
	}
	a.Field("risk", string(d.Risk))
	a.Field("type", kit.Safe(d.Type))
	a.Field("source", string(d.Source))
	a.Field("asked by", kit.Safe(d.AskedBy()))
	a.Field("approved by", kit.Safe(d.Approver))
	a.Field("parent", string(d.Parent))
	a.Field("depends on", document.JoinIDs(d.DependsOn))
	for _, v := range d.Attributes.Values() {
		a.Field(v.Name, kit.Safe(attribute(v.Value)))
	}
	a.Field("recipe", kit.Safe(d.Recipe+parameters(d.With)))
	a.Field("agent", kit.Safe(d.Agent))
	a.Field(approved(d), d.Plan)
	a.Field("goal", document.GoalLine(d.Goal))
	a.Field("trace", d.Trace.Line(a))
	a.Field("created", d.CreatedAt.Local().Format(time.DateTime))
	a.Field("used", render.Consumed(d.Tokens, d.CachedTokens, d.CostUSD))
	if body := kit.Safe(d.Body); body != "" {
		fmt.Fprintf(a.Out, "\n%s\n", kit.Indent(body, "  "))
	}
	if len(d.Questions) > 0 {
		a.Heading("questions")
		for i := range d.Questions {
			document.PrintQuestion(a, &d.Questions[i], "  ")
		}
	}
	if len(d.Children) > 0 {
		a.Heading("child intents")
		for i := range d.Children {
			document.PrintChild(a, &d.Children[i])
		}
	}
	printAuditNotice(a, d)
	if err := printCriteria(a, d); err != nil {
		return err
	}
	if len(d.Work) > 0 {
		a.Heading("tasks")
		for i := range d.Work {
			printTaskLine(a, &d.Work[i], said)
			printActive(a, d, d.Work[i].ID)
		}
	}
	if err := printPast(a, d, said); err != nil {
		return err
	}
	if len(d.Observations) > 0 {
		a.Heading("observations")
		for _, o := range d.Observations {
			fmt.Fprintln(a.Out, kit.Indent(kit.Safe(o), "  "))
		}
	}
	return nil
}

// printPast prints the decisions, the costs, and the runs that are finished.
func printPast(a *kit.App, d *Intent, said *document.Said) error {
	printDecisions(a, d.Decisions)
	if err := printCosts(a, d.Costs); err != nil {
		return err
	}
	if len(d.Runs) > 0 {
		a.Heading("runs")
	}
	for i := range d.Runs {
		printRun(a, &d.Runs[i], said)
	}
	return nil
}

// printDecisions prints the decisions of people: who took it, through which
// gateway, and about what. That the intent was submitted is left out, unless it
// came through a gateway: who asked is in the head already.
func printDecisions(a *kit.App, list []model.Decided) {
	list = slices.DeleteFunc(slices.Clone(list), func(d model.Decided) bool { return d.What == "submit" && d.Via == "" })
	if len(list) > 0 {
		a.Heading("decisions")
	}
	for i := range list {
		d := &list[i]
		var line strings.Builder
		line.WriteString(d.At.Local().Format(time.DateTime) + " " + strings.ReplaceAll(d.What, "_", " "))
		for _, part := range []struct{ word, text string }{
			{" by ", d.By},
			{" via ", d.Via},
			{", plan ", d.Plan},
			{", task ", string(d.Task)},
			{": ", render.FirstLine(d.Question)},
			{": ", render.FirstLine(d.Answer)},
			{": ", render.FirstLine(d.Reason)},
			{": ", strings.Join(d.Fields, ", ")},
		} {
			if part.text != "" {
				line.WriteString(part.word + term.Short(part.text, 200))
			}
		}
		fmt.Fprintf(a.Out, "  %s\n", term.Line(line.String()))
	}
}

// printCosts prints the costs of the steps that called agents, by agent and model. Steps that
// used nothing, such as a merge, are left out, and there is no heading without any other.
func printCosts(a *kit.App, list []model.Cost) error {
	list = slices.DeleteFunc(slices.Clone(list), func(c model.Cost) bool { return c.Used == model.Used{} })
	if len(list) == 0 {
		return nil
	}
	a.Heading("costs")
	columns := render.Columns{Header: []string{"STEP", "AGENT", "MODEL", "ATTEMPTS", "TIME", "TOKENS", "CACHED", "COST"}, Shrink: 2}
	for i := range list {
		c := &list[i]
		used := c.Usage()
		columns.Add(string(c.Step), c.Agent, c.Model, strconv.Itoa(c.Attempts), render.Took(time.Duration(c.Seconds*float64(time.Second))),
			render.Tokens(render.Fresh(&used)), render.Tokens(render.Cached(&used)), render.Cost(c.CostUSD))
	}
	return a.Table(&columns)
}

// printAuditNotice prints the findings of an audit in short, and how to read the report.
// It prints nothing of an intent that is no audit, or whose report is not there yet.
func printAuditNotice(a *kit.App, d *Intent) {
	if d.Audit == nil {
		return
	}
	a.Heading("audit")
	fmt.Fprintln(a.Out, kit.Indent(kit.Safe(d.Audit.Summary), "  "))
	for _, area := range d.Audit.Areas {
		fmt.Fprintf(a.Out, "  %s: %s\n", term.Line(area.Name), render.Count(len(area.Findings), "finding"))
	}
	fmt.Fprintf(a.Out, "  > %s\n", a.Pasted("pfl-forge audit --report "+string(d.ID)))
}

// printCriteria prints the criteria of an intent, and how far it is with them if it is a
// goal.
// Criteria of an intent that is no goal have no judgment: they are listed alone.
func printCriteria(a *kit.App, d *Intent) error {
	if d.Loop == nil {
		if len(d.Criteria) > 0 {
			a.Heading("criteria")
		}
		for _, c := range d.Criteria {
			fmt.Fprintln(a.Out, kit.Indent(kit.Safe(c), "  "))
		}
		return nil
	}
	a.Heading("criteria")
	document.PrintCriteria(a, d.Loop.Criteria, d.Loop.Judgment != nil)
	return goalview.PrintIterations(a, d.Loop)
}

// printActive prints whether a task is paused, and with which others it does not merge.
// Of a task that is not among the active ones nothing is printed.
func printActive(a *kit.App, d *Intent, id forge.TaskID) {
	for _, t := range d.Active {
		if t.ID != id {
			continue
		}
		if t.Paused {
			fmt.Fprintln(a.Out, "      "+document.HowToResume(&d.Item, t.ID))
		}
		if text := t.WaitsFor(); text != "" {
			fmt.Fprintln(a.Out, "      "+text)
		}
		for _, o := range t.Overlaps {
			fmt.Fprintf(a.Out, "      conflicts with %s: %s\n", o.Task, term.Line(strings.Join(o.Files, ", ")))
		}
	}
}

// printRun prints a finished run with what changed its flow, without the reasons
// that were given already. The rules that changed its flow are told in words, in the order
// in which they did, so that a person sees why it took so long.
func printRun(a *kit.App, r *runDetail, said *document.Said) {
	text := fmt.Sprintf("%d. %s, %s", r.Run, r.Outcome, render.Count(r.Steps, "step"))
	reason := render.FirstLine(r.Reason)
	if said.Has(reason) {
		reason = ""
	}
	fmt.Fprintf(a.Out, "  %s\n", kit.WithReason(text, kit.Safe(reason)))
	for _, adj := range r.adjusted {
		detail := adj.Detail
		if said.Has(detail) {
			if adj.Rule == rule.TaskFailed { // there is nothing else to tell
				continue
			}
			detail = ""
		}
		said.Add(detail)
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(strings.TrimSpace(adj.Rule+" "+string(adj.TaskID)+" "+detail)), "     "))
	}
}

// attribute returns the text of an attribute; empty for one that is not set.
func attribute(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ", ")
	case int:
		if v == 0 {
			return ""
		}
	}
	return fmt.Sprint(value)
}

// parameters returns the values of a recipe's parameters in parentheses, sorted by name.
// It is empty without any, and begins with a space otherwise.
func parameters(with map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(with)) {
		parts = append(parts, name+"="+with[name])
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// approved returns the name of that which the hash of an intent is of: its plan, or its
// text while it waits to be analyzed, so that there is no plan yet. See document.AsksFirst.
func approved(d *Intent) string {
	if d.Waiting == forge.WaitingApproval && len(d.Work)+len(d.Children) == 0 {
		return "text"
	}
	return "plan"
}
