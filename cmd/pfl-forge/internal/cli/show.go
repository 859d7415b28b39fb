package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// detail is everything about an intent, as programs read it.
type detail struct {
	item `yaml:",inline"`

	Body         string            `json:"body"                   yaml:"body"`
	DependsOn    []forge.IntentID  `json:"depends_on,omitempty"   yaml:"depends_on,omitempty"`
	Labels       []string          `json:"labels,omitempty"       yaml:"labels,omitempty"`
	Agent        string            `json:"agent,omitempty"        yaml:"agent,omitempty"`
	Recipe       string            `json:"recipe,omitempty"       yaml:"recipe,omitempty"`
	With         map[string]string `json:"with,omitempty"         yaml:"with,omitempty"`
	Criteria     []string          `json:"criteria,omitempty"     yaml:"criteria,omitempty"`
	Loop         *goalDoc          `json:"loop,omitempty"         yaml:"loop,omitempty"` // of a goal
	Questions    []question        `json:"questions,omitempty"    yaml:"questions,omitempty"`
	Work         []taskDetail      `json:"work"                   yaml:"work"`
	Runs         []runDetail       `json:"runs,omitempty"         yaml:"runs,omitempty"`
	Observations []string          `json:"observations,omitempty" yaml:"observations,omitempty"`
	Audit        *audited          `json:"audit,omitempty"        yaml:"audit,omitempty"`
	Commands     []string          `json:"commands,omitempty"     yaml:"commands,omitempty"`
}

// runDetail is a finished run of an intent.
type runDetail struct {
	Run         int           `json:"run"                   yaml:"run"`
	Outcome     forge.Outcome `json:"outcome"               yaml:"outcome"`
	Reason      string        `json:"reason,omitempty"      yaml:"reason,omitempty"`
	Adjustments []string      `json:"adjustments,omitempty" yaml:"adjustments,omitempty"`
	Steps       int           `json:"steps"                 yaml:"steps"`
	At          time.Time     `json:"at"                    yaml:"at"`
}

func (a *app) showCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:               "show <id>",
		Short:             "show everything about an intent or a task",
		Example:           "  pfl-forge show reset-link\n  pfl-forge show reset-link-001",
		Args:              between(1, 1, "the id of an intent or a task"),
		ValidArgsFunction: a.complete(anyIntent, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.show(cmd.Context(), args[0], format) },
	}
	output(cmd, &format)
	return cmd
}

func (a *app) show(ctx context.Context, arg string, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	v, task, err := t.find(ctx, arg)
	if err != nil {
		return err
	}
	if task != nil {
		return a.showTask(ctx, t, v, task, format)
	}
	d := detailOf(v)
	if v.Goal != nil {
		attempts, err := t.attempts(ctx, v.Intent.ID)
		if err != nil {
			return err
		}
		loop := goalOf(v, attempts)
		d.Loop = &loop
	}
	if format.Data() {
		return format.Write(a.out, d)
	}
	if err := a.printDetail(&d); err != nil {
		return err
	}
	if err := a.timeline(ctx, t, v.Intent.ID); err != nil {
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

// find returns an intent, and a task of it if that is what the id names.
func (t *target) find(ctx context.Context, arg string) (*forge.View, *forge.Task, error) {
	id, idErr := forge.ParseIntentID(arg)
	if idErr == nil {
		v, err := t.view(ctx, id)
		if err == nil {
			return v, nil, nil
		}
		idErr = err
	}
	task, err := forge.ParseTaskID(arg)
	if err != nil {
		return nil, nil, idErr
	}
	v, err := t.view(ctx, forge.IntentID(arg[:strings.LastIndexByte(arg, '-')]))
	if err != nil {
		return nil, nil, idErr
	}
	for i := range v.Tasks {
		if v.Tasks[i].ID == task {
			return v, &v.Tasks[i], nil
		}
	}
	return nil, nil, fmt.Errorf("intent %s has no task %s", v.Intent.ID, task)
}

func detailOf(v *forge.View) detail {
	d := detail{
		item: itemOf(&v.Summary), Body: v.Intent.Body, DependsOn: v.Intent.DependsOn, Labels: v.Intent.Labels,
		Agent: v.Intent.Agent, Recipe: v.Intent.Recipe, With: v.Intent.With,
		Criteria: v.Intent.Criteria, Questions: questions(&v.Intent), Work: []taskDetail{},
	}
	d.planParts(v)
	for i := range v.Tasks {
		d.Work = append(d.Work, taskOf(v, &v.Tasks[i]))
	}
	for i := range v.History {
		h := &v.History[i]
		r := runDetail{Run: h.Run, Outcome: h.Outcome, Reason: h.FailureReason, Steps: len(h.StepResults), At: h.CreatedAt}
		for _, adj := range h.Adjustments {
			r.Adjustments = append(r.Adjustments, strings.TrimSpace(adj.Rule+" "+string(adj.TaskID)+" "+adj.Detail))
		}
		d.Runs = append(d.Runs, r)
	}
	for i := range v.Observations {
		d.Observations = append(d.Observations, v.Observations[i].Content)
	}
	if v.Audit != nil {
		report := auditedOf(v)
		d.Audit = &report
	}
	if v.Summary.Waiting != "" {
		d.Commands = commands(&v.Summary)
	}
	return d
}

func (a *app) heading(text string) {
	fmt.Fprintf(a.out, "\n%s\n", a.style(a.out).Bold(text))
}

// field prints a line of a description, unless there is nothing to say.
func (a *app) field(name, value string) {
	if value != "" {
		fmt.Fprintf(a.out, "%-12s %s\n", name+":", value)
	}
}

func (a *app) printDetail(d *detail) error {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "%s  %s\n", style.Bold(string(d.ID)), safe(d.Title))
	a.field("status", string(d.Status))
	if d.Waiting != "" {
		e := entry{item: d.item}
		a.field("waits", style.Attention(e.why()))
	} else {
		a.field("now", safe(d.Activity))
		a.field("reason", safe(d.Reason))
	}
	for _, f := range d.Failures {
		a.field("failure", f.String())
	}
	a.field("risk", string(d.Risk))
	a.field("type", safe(d.Type))
	a.field("source", string(d.Source))
	a.field("asked by", safe(d.Requester))
	a.field("approved by", safe(d.Approver))
	a.field("part of", string(d.Parent))
	a.field("depends on", join(d.DependsOn))
	a.field("labels", safe(strings.Join(d.Labels, ", ")))
	a.field("recipe", safe(d.Recipe+parameters(d.With)))
	a.field("agent", safe(d.Agent))
	a.field("plan", d.Plan)
	a.field("goal", goalLine(d.Goal))
	a.field("created", d.CreatedAt.Local().Format(time.DateTime))
	a.field("used", render.Consumed(&forge.Usage{InputTokens: d.Tokens, CostUSD: d.CostUSD}))
	if body := safe(d.Body); body != "" {
		fmt.Fprintf(a.out, "\n%s\n", indent(body, "  "))
	}
	if len(d.Questions) > 0 {
		a.heading("questions")
		for i := range d.Questions {
			a.printQuestion(&d.Questions[i], "  ")
		}
	}
	if len(d.Children) > 0 {
		a.heading("parts")
		for i := range d.Children {
			a.printPart(&d.Children[i])
		}
	}
	a.printAuditNotice(d)
	if err := a.printLoop(d); err != nil {
		return err
	}
	if len(d.Work) > 0 {
		a.heading("tasks")
		for i := range d.Work {
			a.printTaskLine(&d.Work[i])
			a.printStanding(d, d.Work[i].ID)
		}
	}
	if len(d.Runs) > 0 {
		a.heading("runs")
		for i := range d.Runs {
			a.printRun(&d.Runs[i])
		}
	}
	if len(d.Observations) > 0 {
		a.heading("observations")
		for _, o := range d.Observations {
			fmt.Fprintln(a.out, indent(safe(o), "  "))
		}
	}
	return nil
}

// printAuditNotice says what an audit found, and where the report is.
func (a *app) printAuditNotice(d *detail) {
	if d.Audit == nil {
		return
	}
	a.heading("audit")
	fmt.Fprintln(a.out, indent(safe(d.Audit.Summary), "  "))
	for _, area := range d.Audit.Areas {
		fmt.Fprintf(a.out, "  %s: %s\n", term.Line(area.Name), render.Count(len(area.Findings), "finding"))
	}
	fmt.Fprintf(a.out, "  > pfl-forge audit --report %s\n", d.ID)
}

// printStanding says whether a task is paused, and with which others it does not merge.
func (a *app) printStanding(d *detail, id forge.TaskID) {
	for _, t := range d.Active {
		if t.ID != id {
			continue
		}
		if t.Paused {
			fmt.Fprintln(a.out, "      "+howToResume(&d.item, t.ID))
		}
		for _, o := range t.Overlaps {
			fmt.Fprintf(a.out, "      does not merge with %s as it is: %s\n", o.Task, term.Line(strings.Join(o.Files, ", ")))
		}
	}
}

func (a *app) printRun(r *runDetail) {
	text := fmt.Sprintf("%d. %s, %s", r.Run, r.Outcome, render.Count(r.Steps, "step"))
	fmt.Fprintf(a.out, "  %s\n", withReason(text, safe(r.Reason)))
	for _, adj := range r.Adjustments {
		fmt.Fprintln(a.out, indent(safe(adj), "     "))
	}
}

func join(ids []forge.IntentID) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, ", ")
}
