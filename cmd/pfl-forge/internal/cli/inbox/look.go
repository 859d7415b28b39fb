package inbox

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/diff"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/show"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// plan prints the whole plan, and the reviews so far. It prints all that the
// decision holds, without a bound, and reads nothing: it is the plan whose
// fingerprint an approval sends. Child intents come before the tasks.
func (w *walk) plan(_ context.Context, e *pending.Decision) (step, error) {
	if len(e.Children) > 0 {
		w.app.Heading(render.Count(len(e.Children), "child intent"))
		for i := range e.Children {
			document.PrintChild(w.app, &e.Children[i])
		}
	}
	if len(e.Work) > 0 {
		w.app.Heading(render.Count(len(e.Work), "task"))
	}
	for i := range e.Work {
		t := &e.Work[i]
		fmt.Fprintf(w.app.Out, "%s  %s  %s\n", w.app.Style(w.app.Out).Bold(string(t.ID)), t.Status, kit.Safe(t.Title))
		if text := kit.Safe(t.Plan); text != "" {
			fmt.Fprintln(w.app.Out, kit.Indent(text, "  "))
		}
		for n, r := range t.Requirements {
			fmt.Fprintf(w.app.Out, "  requirement %d: %s\n", n+1, term.Line(r))
		}
		for n, s := range t.Steps {
			fmt.Fprintf(w.app.Out, "  %d. %s\n", n+1, term.Line(s))
		}
		for _, f := range t.Files {
			fmt.Fprintf(w.app.Out, "  expected: %s\n", term.Line(f))
		}
		if t.Write != nil {
			fmt.Fprintf(w.app.Out, "  writes %s:\n%s\n", term.Line(t.Write.Path), kit.Indent(kit.Safe(t.Write.Content), "    "))
		}
		for k := range t.Reviews {
			document.PrintReview(w.app, &t.Reviews[k])
		}
	}
	fmt.Fprintln(w.app.Out)
	return stay, nil
}

// diff prints the last change of every task that is not merged.
//
// Through a gateway the runner is asked for the lines; elsewhere git is, in the repository at hand.
// A task without a change has nothing to show, and one that is merged is left to pfl-forge show.
func (w *walk) diff(ctx context.Context, e *pending.Decision) (step, error) {
	t, err := target.Reader(ctx, w.app)
	if err != nil {
		return stay, err
	}
	defer t.Close()
	v, err := t.View(ctx, e.ID)
	if err != nil {
		return stay, err
	}
	shown := 0
	for i := range v.Tasks {
		d := show.TaskOf(v, &v.Tasks[i])
		if d.Head == "" || d.Commit != "" {
			continue
		}
		if t.ByHTTP() {
			change, err := t.Diff(ctx, model.DiffRequest{Intent: e.ID, Task: d.ID})
			if err != nil {
				return stay, fmt.Errorf("cannot show the change of %s: %w", d.ID, err)
			}
			w.app.Heading(string(d.ID))
			diff.Print(w.app, &change)
			shown++
			continue
		}
		if t.Repo == nil {
			return stay, fmt.Errorf("the change of %s cannot be shown without a repository: give --repo", d.ID)
		}
		text, err := show.Diff(ctx, t, &d)
		if err != nil {
			return stay, fmt.Errorf("cannot show the change of %s: %w", d.ID, err)
		}
		w.app.Heading(string(d.ID))
		fmt.Fprintln(w.app.Out, kit.Safe(text))
		shown++
	}
	if shown == 0 {
		w.app.Say("all changes are already merged: pfl-forge show %s", e.ID)
	}
	return stay, nil
}

// verify prints the outcome of the verify commands on each change.
// The output is that of the command that failed; where all passed only that is known here. A
// change that no command ran on says so, so that silence is not read as success.
func (w *walk) verify(_ context.Context, e *pending.Decision) (step, error) {
	for i := range e.Work {
		t := &e.Work[i]
		switch {
		case t.Unverified:
			w.app.Heading(string(t.ID) + ": not verified yet; that happens in its merge, on what is merged")
		case t.Verify == nil:
		case t.Verify.Passed:
			w.app.Heading(string(t.ID) + ": verified")
		default:
			w.app.Heading(string(t.ID) + ": " + term.Line(t.Verify.Command) + " failed")
			fmt.Fprintln(w.app.Out, kit.Safe(t.Verify.Output))
		}
	}
	fmt.Fprintln(w.app.Out)
	return stay, nil
}

// log prints the log of the intent.
// It is the output of `pfl-forge logs <id>`, whole, and does not follow.
func (w *walk) log(ctx context.Context, e *pending.Decision) (step, error) {
	fmt.Fprintln(w.app.Out)
	return stay, logs.PrintIntent(ctx, w.app, e.ID)
}
