package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const inboxHelp = `Show what waits for you: why, what you can do, and what a decision needs.

On a terminal it goes through the entries one by one, and a key decides: a approves, r
rejects, e answers, t tries again with instructions, u resumes, c cancels; d shows the
change, p the plan, v the output of verify, l the log; n goes to the next entry, q ends.
Elsewhere, and with --list or --output, it prints them.`

func (a *app) inboxCommand() *cobra.Command {
	var format render.Format
	var list bool
	cmd := &cobra.Command{
		Use:     "inbox",
		Short:   "go through what waits for you, why, and what you can do",
		Long:    inboxHelp,
		Example: "  pfl-forge inbox\n  pfl-forge inbox --list\n  pfl-forge inbox -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c, ok := a.terminal(); ok && !list && !cmd.Flags().Changed("output") {
				defer c.Close()
				return a.walk(cmd.Context(), c)
			}
			return a.inbox(cmd.Context(), format)
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "print them, also on a terminal")
	output(cmd, &format)
	return cmd
}

func (a *app) inbox(ctx context.Context, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	all, err := t.summaries(ctx)
	if err != nil {
		return err
	}
	list := []*entry{}
	for i := range all {
		if all[i].Waiting == "" {
			continue
		}
		e, _, err := t.entry(ctx, all[i].Key.Intent)
		if err != nil {
			return err
		}
		if e != nil { // it may have gone on meanwhile
			list = append(list, e)
		}
	}
	switch {
	case format.Data():
		return format.Write(a.out, list)
	case format == render.Name:
		for _, e := range list {
			fmt.Fprintln(a.out, e.ID)
		}
		return nil
	}
	if len(list) == 0 {
		a.say("nothing waits for you")
	}
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		a.printEntry(e)
		for _, c := range e.Commands {
			fmt.Fprintf(a.out, "  > %s\n", c)
		}
	}
	return nil
}

func (a *app) printEntry(e *entry) {
	style := a.style(a.out)
	fmt.Fprintf(a.out, "%s  %s\n", style.Bold(string(e.ID)), safe(e.Title))
	fmt.Fprintf(a.out, "  %s\n", style.Attention(e.why()))
	for _, f := range e.Failures {
		fmt.Fprintf(a.out, "  %s\n", f)
	}
	a.printRequest(e)
	if e.Goal != nil {
		fmt.Fprintf(a.out, "  %s\n", goalLine(e.Goal))
	}
	a.printCriteria(e.Criteria, e.Judged)
	if e.Waiting != forge.WaitingClarification {
		for i := range e.Children {
			a.printPart(&e.Children[i])
		}
		for i := range e.Work {
			a.printWork(e, &e.Work[i])
		}
	}
	for i := range e.Questions {
		if e.Waiting == forge.WaitingClarification {
			a.printQuestion(&e.Questions[i], "  ")
		}
	}
	if cost := e.cost(); cost != "" {
		fmt.Fprintf(a.out, "  so far: %s\n", cost)
	}
}

// printRequest says who asked for it.
func (a *app) printRequest(e *entry) {
	var parts []string
	for _, part := range []string{e.Type, e.Requester, string(e.Source)} {
		if part = term.Line(part); part != "" {
			parts = append(parts, part)
		}
	}
	fmt.Fprintf(a.out, "  asked for %s ago (%s)\n", render.Age(time.Since(e.CreatedAt)), strings.Join(parts, ", "))
}

// maxNames bounds how many files a line names.
const maxNames = 8

func (a *app) printWork(e *entry, w *work) {
	fmt.Fprintf(a.out, "  %s  %s  %s\n", w.ID, w.Status, safe(w.Title))
	if w.Paused {
		fmt.Fprintf(a.out, "      %s\n", howToResume(&e.item, w.ID))
	}
	if w.Status == forge.TaskPending {
		a.printPlanText(w.Plan, "      ")
	}
	a.names("expected", w.Files)
	a.names("changed", w.Changed)
	if w.Attempts > 1 {
		fmt.Fprintf(a.out, "      %s\n", render.Count(w.Attempts, "attempt"))
	}
	if w.Failure != "" {
		fmt.Fprintln(a.out, indent(safe(w.Failure), "      "))
	}
	if w.Verify != nil && !w.Verify.Passed {
		fmt.Fprintf(a.out, "      verify: %s failed\n", term.Line(w.Verify.Command))
	}
	for _, issue := range w.Issues {
		fmt.Fprintln(a.out, indent("review: "+safe(issue), "      "))
	}
}

// printPart prints what became of a part of an intent, or, before it has begun, what it is to be.
func (a *app) printPart(c *child) {
	fmt.Fprintf(a.out, "  %s  %s  %s\n", c.ID, cmp.Or(string(c.Status), "planned"), safe(c.Title))
	if c.Status != "" {
		return
	}
	a.printPlanText(c.Body, "      ")
	if len(c.DependsOn) > 0 {
		fmt.Fprintf(a.out, "      after %s\n", join(c.DependsOn))
	}
	if c.Risk != "" {
		fmt.Fprintf(a.out, "      risk %s\n", c.Risk)
	}
}

// names prints the first of some files in a line.
func (a *app) names(what string, files []string) {
	if len(files) == 0 {
		return
	}
	list := files[:min(maxNames, len(files))]
	text := term.Line(strings.Join(list, ", "))
	if more := len(files) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(a.out, "      %s: %s\n", what, text)
}

// printPlanText prints the beginning of a task's plan.
func (a *app) printPlanText(plan, by string) {
	const most = 8
	plan = safe(plan)
	if plan == "" {
		return
	}
	lines := strings.Split(plan, "\n")
	if len(lines) > most {
		lines = append(lines[:most], "...")
	}
	fmt.Fprintln(a.out, indent(strings.Join(lines, "\n"), by))
}
