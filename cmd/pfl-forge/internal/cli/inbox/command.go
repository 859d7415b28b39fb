// Package inbox is the command that shows what waits for a person: as a list, or on a
// terminal one decision after the other, each with the keys that settle it.
//
// What a decision is and what can be done about it is in package pending; here it is
// printed and asked for.
package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const inboxHelp = `Show what waits for you: why, what you can do, and what you need for a decision.

On a terminal it goes through the entries one at a time, and a key decides: a approves, w
wants changes, r rejects, e answers, t retries with instructions, u resumes, c cancels; A, T and U do the
same with all that are left and wait for the same; d shows the change, p the plan, v the
output of verify, l the log; n skips the entry, b goes back, ? explains the keys, and q or
Ctrl-D quits.
Elsewhere, and with --list or --output, it prints the list.`

// Command returns the command inbox.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	var lines bool
	cmd := &cobra.Command{
		Use:     "inbox",
		Short:   "go through everything that waits for you",
		Long:    inboxHelp,
		Example: "  pfl-forge inbox\n  pfl-forge inbox --list\n  pfl-forge inbox -o json",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c, ok := a.Terminal(); ok && !lines && !cmd.Flags().Changed("output") {
				defer c.Close()
				return through(cmd.Context(), a, c)
			}
			return list(cmd.Context(), a, format)
		},
	}
	cmd.Flags().BoolVar(&lines, "list", false, "print the list, even on a terminal")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// list prints every pending decision, with the commands that decide it.
func list(ctx context.Context, a *kit.App, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	all, err := pending.List(ctx, t)
	if err != nil {
		return err
	}
	names := kit.Names(all, func(d **pending.Decision) string { return string((*d).ID) })
	return a.Print(format, all, names, func() error {
		if len(all) == 0 {
			sayNothing(ctx, a, t)
		}
		for i, d := range all {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			printDecision(a, d)
			for _, c := range d.Commands {
				fmt.Fprintf(a.Out, "  > %s\n", a.Pasted(c))
			}
		}
		return nil
	})
}

// sayNothing says that nothing waits for a person, or what hides that something may.
func sayNothing(ctx context.Context, a *kit.App, t *target.Target) {
	if t.Repo != nil && !t.Remote {
		lost, err := t.Repo.FindLost(ctx, t.Bus)
		if err == nil && lost != nil {
			a.Say("%s", a.Style(a.Err).Bad(lost.What()+"; "+lost.Remedy()))
			return
		}
	}
	a.Say("nothing waits for you")
}

// printDecision prints everything that a person needs to know for a decision.
func printDecision(a *kit.App, e *pending.Decision) {
	style := a.Style(a.Out)
	fmt.Fprintf(a.Out, "%s  %s\n", style.Bold(string(e.ID)), kit.Safe(e.Title))
	fmt.Fprintf(a.Out, "  %s\n", style.Attention(e.Why()))
	if len(e.Also) > 0 {
		fmt.Fprintf(a.Out, "  %s\n", also(e.Also))
	}
	for _, f := range e.Failures {
		fmt.Fprintf(a.Out, "  %s\n", f)
	}
	printRequest(a, e)
	if document.AsksFirst(&e.Summary) {
		fmt.Fprintf(a.Out, "  approving starts the analysis, which may cost money; nothing is changed before its plan is approved; text %s:\n", e.Plan)
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(e.Text), "    "))
	}
	if e.Goal != nil {
		fmt.Fprintf(a.Out, "  %s\n", document.GoalLine(e.Goal))
	}
	document.PrintCriteria(a, e.Criteria, e.Judged)
	if e.Waiting != forge.WaitingClarification {
		for i := range e.Children {
			document.PrintChild(a, &e.Children[i])
		}
		for i := range e.Work {
			printWork(a, e, &e.Work[i])
		}
	}
	for i := range e.Questions {
		if e.Waiting == forge.WaitingClarification {
			document.PrintQuestion(a, &e.Questions[i], "  ")
		}
	}
	if cost := e.Cost(); cost != "" {
		fmt.Fprintf(a.Out, "  so far: %s\n", cost)
	}
	if trace := e.Trace.Line(a); trace != "" {
		fmt.Fprintf(a.Out, "  trace: %s\n", trace)
	}
}

// also returns the line for the other intents that wait for the same.
func also(ids []forge.IntentID) string {
	const most = 5
	var list []string
	for _, id := range ids[:min(most, len(ids))] {
		list = append(list, string(id))
	}
	if more := len(ids) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return render.Count(len(ids)+1, "intent") + " wait for that, also " + strings.Join(list, ", ")
}

// printRequest prints who asked for an intent, and when.
func printRequest(a *kit.App, e *pending.Decision) {
	var parts []string
	for _, part := range []string{e.Type, e.AskedBy(), string(e.Source)} {
		if part = term.Line(part); part != "" {
			parts = append(parts, part)
		}
	}
	fmt.Fprintf(a.Out, "  created %s ago (%s)\n", render.Age(time.Since(e.CreatedAt)), strings.Join(parts, ", "))
}

// maxNames bounds how many files a line names.
const maxNames = 8

// printWork prints a task, and what came of it so far.
func printWork(a *kit.App, e *pending.Decision, w *pending.Task) {
	fmt.Fprintf(a.Out, "  %s  %s  %s\n", w.ID, w.Status, kit.Safe(w.Title))
	if w.Paused {
		fmt.Fprintf(a.Out, "      %s\n", document.HowToResume(&e.Item, w.ID))
	}
	if w.Status == forge.TaskPending {
		document.PrintPlan(a, w.Plan, "      ")
	}
	names(a, "expected", w.Files)
	names(a, "changed", w.Changed)
	if w.Attempts > 1 {
		fmt.Fprintf(a.Out, "      %s\n", render.Count(w.Attempts, "attempt"))
	}
	switch {
	// Who approves a change of protected files has to know that nothing has run on it. Nothing lands because of that: what fails
	// in the merge goes back to its agent, and is asked for again.
	case w.Unverified:
		fmt.Fprintln(a.Out, "      verify: runs in its merge, on what is merged")
	case w.Verify != nil && !w.Verify.Passed:
		fmt.Fprintf(a.Out, "      verify: %s failed\n", term.Line(w.Verify.Command))
	}
	document.PrintTaskFailure(a, e.Why(), w.ID, w.Failure, w.Issues)
}

// names prints the first of some files in a line, and how many more there are.
func names(a *kit.App, what string, files []string) {
	if len(files) == 0 {
		return
	}
	list := files[:min(maxNames, len(files))]
	text := term.Line(strings.Join(list, ", "))
	if more := len(files) - len(list); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(a.Out, "      %s: %s\n", what, text)
}
