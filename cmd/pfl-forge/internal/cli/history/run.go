package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// historyOf prints one finished run of an intent as a timeline.
// The other runs of the intent are named on standard error, each with the command that shows it.
func historyOf(ctx context.Context, a *kit.App, arg string, f *flags) error {
	id, err := forge.ParseIntentID(arg)
	if err != nil {
		return kit.Usage(err)
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, err := t.View(ctx, id)
	if err != nil {
		return err
	}
	h, err := chooseRun(v, f.run)
	if err != nil {
		return err
	}
	d := pastDetailOf(h)
	d.Trace = t.Trace(id, h.Run)
	if newest := &v.History[len(v.History)-1]; newest.Run == h.Run && v.Summary.Run == h.Run {
		d.Goal = model.GoalProgressOf(v.Summary.Goal)
	}
	return a.Print(f.format, d, []string{nameOf(&d.pastRun)}, func() error {
		printPastDetail(a, &d)
		for i := range v.History {
			if other := &v.History[i]; other.Run != h.Run {
				a.Say("run %d %s: pfl-forge history %s --run %d", other.Run, other.Outcome, id, other.Run)
			}
		}
		return nil
	})
}

// chooseRun returns the finished run of an intent with a number, the last one for 0.
// A run that has not ended is an error that names show.
func chooseRun(v *forge.View, run int) (*forge.History, error) {
	id := v.Intent.ID
	if len(v.History) == 0 {
		return nil, fmt.Errorf("no run of %s has ended yet; see `pfl-forge show %s`", id, id)
	}
	if run == 0 {
		return &v.History[len(v.History)-1], nil
	}
	i := slices.IndexFunc(v.History, func(h forge.History) bool { return h.Run == run })
	if i < 0 {
		return nil, fmt.Errorf("%s has no finished run %d; it has %s", id, run, render.Count(len(v.History), "finished run"))
	}
	return &v.History[i], nil
}

// printPastDetail prints a finished run: its head, its timeline and its observations.
// Fields that are empty are left out. Texts of agents are made safe for a terminal here.
func printPastDetail(a *kit.App, d *pastDetail) {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "%s  %s\n", style.Bold(string(d.Intent)), kit.Safe(d.Title))
	a.Field("run", fmt.Sprint(d.Run))
	outcome := kit.WithReason(string(d.Outcome), term.Line(d.Reason))
	if d.Outcome == forge.OutcomeSuccess {
		a.Field("outcome", style.Good(outcome))
	} else {
		a.Field("outcome", style.Bad(outcome))
	}
	a.Field("goal", document.GoalLine(d.Goal))
	a.Field("type", kit.Safe(d.Type))
	a.Field("risk", string(d.Risk))
	a.Field("source", string(d.Source))
	a.Field("flow", joinSteps(d.Flow))
	a.Field("trace", d.Trace.Line(a))
	a.Field("began", d.StartedAt.Local().Format(time.DateTime))
	a.Field("took", tookSeconds(d.Seconds))
	a.Field("used", render.Consumed(d.Tokens, d.CachedTokens, d.CostUSD))
	a.Heading("timeline")
	for i := range d.Timeline {
		fmt.Fprintln(a.Out, timelineText(&d.Timeline[i], d.StartedAt, style))
	}
	if len(d.Observations) == 0 {
		return
	}
	a.Heading("observations")
	for i := range d.Observations {
		o := &d.Observations[i]
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(o.Content), "  "))
		for _, e := range o.Evidence {
			fmt.Fprintf(a.Out, "    %s\n", style.Faint(term.Line(e)))
		}
	}
}

// timelineText returns a line of the timeline, which begins with how long after the begin
// of the run it was. An adjustment is a line of its own below what led to it.
func timelineText(e *happened, began time.Time, style render.Style) string {
	at := style.Faint(fmt.Sprintf("%8s", "+"+render.Took(e.At.Sub(began))))
	who := string(e.Task)
	if e.Rule != "" {
		text := term.Line(e.Rule)
		if e.Means != "" {
			text += ": " + e.Means
		}
		if detail := term.Line(e.Detail); detail != "" {
			text += " (" + detail + ")"
		}
		return fmt.Sprintf("  %s  %-24s  %s %s", at, who, style.Attention("->"), text)
	}
	var parts []string
	for _, part := range []string{
		term.Line(e.Agent), term.Line(e.Model), render.Consumed(e.Tokens, e.CachedTokens, e.CostUSD), session(e.Session), ranIn(e.Executor),
	} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	outcome := fmt.Sprintf("%-14s", term.Line(render.Outcome(e.Step, e.Outcome)))
	if e.Outcome != "ok" && e.Outcome != string(forge.MergeDone) {
		outcome = style.Bad(outcome)
	}
	step := render.StepName(forge.Attempt{Step: e.Step, Number: e.Attempt})
	line := fmt.Sprintf("  %s  %-24s  %-12s %s %7s  %s", at, who, step, outcome, tookSeconds(e.Seconds), strings.Join(parts, ", "))
	return strings.TrimRight(line, " ")
}

// ranIn says where an attempt's agent and commands ran; nothing of an executor that this
// version does not know.
func ranIn(e forge.Executor) string {
	switch e {
	case forge.ExecutorPods:
		return "in pods"
	case forge.ExecutorNamespaces:
		return "in namespaces"
	case forge.ExecutorNone:
		return "unconfined"
	}
	return ""
}

// session returns the name of an agent's session, empty if there was none.
func session(id string) string {
	if id == "" {
		return ""
	}
	return "session " + term.Line(id)
}

// joinSteps returns steps with commas between them.
func joinSteps(steps []forge.Step) string {
	list := make([]string, len(steps))
	for i, s := range steps {
		list[i] = string(s)
	}
	return strings.Join(list, ", ")
}
