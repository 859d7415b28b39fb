// Package inbox is the command that shows what waits for a person: as a list, or on a
// terminal one decision after the other, each with the keys that settle it.
//
// What a decision is and what can be done about it is in package pending; here it is
// printed and asked for.
//
// It has two halves. command.go prints the list, for pipes, for --list and for -o.
// walk.go is the dialogue: walk goes back and forth between decisions, visit shows one of
// them, ask reads keys, and each key is a function that returns the next step. look.go
// has the keys that only show something, all.go those that decide many intents at once.
//
// Everything is read anew for each decision, and the connection is closed while the person
// thinks, so that neither a run nor another person waits for this one. The tests are the
// scripts inbox.txtar, interactive.txtar and waiting.txtar in cmd/pfl-forge/testdata/script.
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
	"github.com/pfl-forge/pfl-forge/document/asked"
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
// A person at a terminal gets the dialogue. --list, -o and a pipe get the list, which asks nothing.
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

// list prints every pending decision, with the commands that decide it. With -o json
// and -o yaml the decisions are the document; with -o name it is an id a line. That
// the list is empty is said on standard error, and the exit code is 0 all the same.
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
//
// A repository's store that has lost messages shows fewer intents than there
// were, and an empty inbox would read as good news (ADR-0079). Only the
// repository's own store can be looked into from here.
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
//
// The order is that in which a person needs it: why it waits, what failed, who
// asked, the plan or the questions, and the cost. While questions are open the
// plan is left out, since the answers may change it. Both halves of the package
// print a decision by it, so the list and the dialogue show the same.
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
	printHidden(a, e)
	if document.AsksFirst(&e.Summary) {
		fmt.Fprintf(a.Out, "  approving starts the analysis, which may cost money; nothing is changed before its plan is approved; text %s:\n", e.Plan)
		for i := range e.Asked {
			printAsked(a, &e.Asked[i])
		}
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
// At most five are named. The count includes the intent of the decision itself.
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
// Parts that are not known, such as the type or who asked, are left out of the parentheses.
func printRequest(a *kit.App, e *pending.Decision) {
	var parts []string
	for _, part := range []string{e.Type, e.AskedBy(), string(e.Source)} {
		if part = term.Line(part); part != "" {
			parts = append(parts, part)
		}
	}
	fmt.Fprintf(a.Out, "  created %s ago (%s)\n", render.Age(time.Since(e.CreatedAt)), strings.Join(parts, ", "))
}

// printAsked prints one part of what a hash is of. The body stands for itself,
// all others behind their name.
func printAsked(a *kit.App, p *asked.Part) {
	for _, text := range p.Texts {
		if p.Name != "body" {
			text = p.Name + ": " + text
		}
		fmt.Fprintln(a.Out, kit.Indent(kit.Safe(text), "    "))
	}
}

// printHidden prints the parts of the request that a page which shows it as Markdown would hide.
// The command show has all of the request, as the agents get it.
func printHidden(a *kit.App, e *pending.Decision) {
	if len(e.Hidden) > 0 {
		fmt.Fprintf(a.Out, "  %s\n", a.Style(a.Out).Attention("the request has text that a page does not show, and agents get:"))
	}
	for _, one := range e.Hidden {
		fmt.Fprintf(a.Out, "    %s\n", term.Line(one.String()))
	}
}

// maxNames bounds how many files a line names. A change of protected paths may
// touch hundreds; the key p of the dialogue, and pfl-forge show, list all.
const maxNames = 8

// printWork prints a task, and what came of it so far.
//
// The plan is printed only of a task that has not begun: later the changed files and
// the outcome of verify say more. Failures and issues come last, next to the prompt.
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
	// Who approves a change of protected files has to know that nothing has run
	// on it. Nothing lands because of that: what fails in the merge goes back
	// to its agent, and is asked for again.
	case w.Unverified:
		fmt.Fprintln(a.Out, "      verify: runs in its merge, on what is merged")
	case w.Verify != nil && !w.Verify.Passed:
		fmt.Fprintf(a.Out, "      verify: %s failed\n", term.Line(w.Verify.Command))
	}
	var said document.Said
	said.Add(e.Why())
	document.PrintTaskFailure(a, &said, w.ID, w.Failure, w.Issues)
}

// names prints the first of some files in a line, and how many more there are. Nothing is
// printed if there are none. Paths come from a repository, so they are made safe for a terminal.
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
