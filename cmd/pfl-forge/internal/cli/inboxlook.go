package cli

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// plan shows everything that is intended, and the reviews so far.
func (w *walk) plan(_ context.Context, e *entry) (step, error) {
	if len(e.Children) > 0 {
		w.app.heading(render.Count(len(e.Children), "part"))
		for i := range e.Children {
			w.app.printPart(&e.Children[i])
		}
	}
	if len(e.Work) > 0 {
		w.app.heading(render.Count(len(e.Work), "task"))
	}
	for i := range e.Work {
		t := &e.Work[i]
		fmt.Fprintf(w.app.out, "%s  %s  %s\n", w.app.style(w.app.out).Bold(string(t.ID)), t.Status, safe(t.Title))
		if text := safe(t.Plan); text != "" {
			fmt.Fprintln(w.app.out, indent(text, "  "))
		}
		for n, s := range t.Steps {
			fmt.Fprintf(w.app.out, "  %d. %s\n", n+1, term.Line(s))
		}
		for _, f := range t.Files {
			fmt.Fprintf(w.app.out, "  expected: %s\n", term.Line(f))
		}
		for k := range t.Reviews {
			w.app.printReview(&t.Reviews[k])
		}
	}
	fmt.Fprintln(w.app.out)
	return stay, nil
}

// diff shows the last change of every task that has not landed.
func (w *walk) diff(ctx context.Context, e *entry) (step, error) {
	t, err := w.app.reader(ctx)
	if err != nil {
		return stay, err
	}
	defer t.close()
	v, err := t.view(ctx, e.ID)
	if err != nil {
		return stay, err
	}
	shown := 0
	for i := range v.Tasks {
		d := taskOf(v, &v.Tasks[i])
		if d.Head == "" || d.Commit != "" {
			continue
		}
		if t.repo == nil {
			return stay, fmt.Errorf("there is no repository here to show the change of %s from: give --repo", d.ID)
		}
		text, err := t.diff(ctx, &d)
		if err != nil {
			return stay, fmt.Errorf("cannot show the change of %s: %w", d.ID, err)
		}
		w.app.heading(string(d.ID))
		fmt.Fprintln(w.app.out, safe(text))
		shown++
	}
	if shown == 0 {
		w.app.say("every change has landed already: pfl-forge show %s", e.ID)
	}
	return stay, nil
}

// verify shows what the verify commands said.
func (w *walk) verify(_ context.Context, e *entry) (step, error) {
	for i := range e.Work {
		t := &e.Work[i]
		switch {
		case t.Verify == nil:
		case t.Verify.Passed:
			w.app.heading(string(t.ID) + ": verified")
		default:
			w.app.heading(string(t.ID) + ": " + term.Line(t.Verify.Command) + " failed")
			fmt.Fprintln(w.app.out, safe(t.Verify.Output))
		}
	}
	fmt.Fprintln(w.app.out)
	return stay, nil
}

// log shows what happened.
func (w *walk) log(ctx context.Context, e *entry) (step, error) {
	fmt.Fprintln(w.app.out)
	return stay, w.app.printLog(ctx, e.ID)
}

// printLog prints what happened to an intent until now.
func (a *app) printLog(ctx context.Context, id forge.IntentID) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	out := a.logOutput(formatLines)
	r := logs.New(logs.Query{Project: t.project, Intent: id}, out.show)
	if err := r.Read(ctx, t.bus, false); err != nil {
		return err
	}
	a.sayIncomplete(r)
	return nil
}
