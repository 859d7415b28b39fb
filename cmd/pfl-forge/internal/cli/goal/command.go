// Package goal is the commands of goals. A goal is an intent with criteria, and everything
// that is the same for both is the code of intents: a goal is submitted as package create
// does it, worked on as package run does it, cancelled and resumed as package control does
// it, and shown with the document of package goalview, which show prints as well. Goals
// have three things of their own: the file that describes one, the list with iterations and
// criteria, and the exit codes of goal run.
//
// Goals are shown to standard output, progress and hints go to standard error. The
// commands are tested by goal.txtar and goalinput.txtar in cmd/pfl-forge/testdata/script;
// the tests here are of the pure parts: which exit code, and how a goal goes on.
package goal

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/control"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const help = `A goal is an intent with criteria. One agent works on it, another one summarizes the work,
and a third one, without tools, judges every criterion from the change itself. That is one
iteration. Each iteration knows what the earlier ones tried. They end when every criterion
is met and the change is merged, or when no iterations are left.`

// Command returns the command goal with those below it.
func Command(a *kit.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "goal",
		Short: "work on a task until its criteria are met",
		Long:  help,
		Args:  kit.KnownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(runCommand(a), statusCommand(a), listCommand(a), cancelCommand(a), resumeCommand(a))
	return cmd
}

// statusCommand returns the command goal status.
// It shows an intent as a goal alone; `pfl-forge show` shows the whole intent.
func statusCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:               "status <id>",
		Aliases:           []string{"show"},
		Short:             "show the criteria and iterations of a goal, and its last judgment",
		Example:           "  pfl-forge goal status reset-link\n  pfl-forge goal status reset-link -o json",
		Args:              kit.Between(1, 1, "the id of a goal"),
		ValidArgsFunction: complete.Intents(a, isGoal, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := target.Reader(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer t.Close()
			d, err := read(cmd.Context(), t, args[0])
			if err != nil {
				return err
			}
			return goalview.Print(a, d, format)
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// read returns the goal that an argument names by its id. An id that is malformed is
// a mistake in the command line; one of an intent without criteria is an error that
// says where to look instead. Paths of files are left out of an organisation's goal.
func read(ctx context.Context, t *target.Target, arg string) (*goalview.Document, error) {
	id, err := forge.ParseIntentID(arg)
	if err != nil {
		return nil, kit.Usage(err)
	}
	v, err := t.View(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case v.Goal == nil:
		return nil, notGoal(id)
	}
	d, err := goalview.Read(ctx, t, v)
	if err != nil {
		return nil, err
	}
	if t.Remote {
		d.HistoryPath, d.KnowledgePath, d.RawLogDir = "", "", "" // there are no files where nobody has a checkout
	}
	return d, nil
}

// isGoal reports whether an intent has criteria.
func isGoal(s *forge.Summary) bool { return s.Goal != nil }

// cancelCommand returns the command goal cancel. It is `pfl-forge cancel` for
// goals: the same event, sent by the same code, and a refusal for other intents.
func cancelCommand(a *kit.App) *cobra.Command {
	var said pending.Said
	var r control.Request
	cmd := &cobra.Command{
		Use:               "cancel <id>...",
		Short:             "stop goals for good",
		Long:              "Stop goals for good. The commits and findings of all iterations are kept.",
		Example:           "  pfl-forge goal cancel reset-link --reason \"not now\"",
		Args:              kit.AtLeast(1, "the id of a goal"),
		ValidArgsFunction: complete.Intents(a, isGoal, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Choose = onlyGoals(control.Always(pending.Cancel, &said))
			return control.Send(cmd.Context(), a, args, &r)
		},
	}
	cmd.Flags().StringVar(&said.Text, "reason", "", "`reason` for the history")
	kit.OutputFlag(cmd, &r.Format)
	return cmd
}

// resumeCommand returns the command goal resume.
//
// It has two meanings in one word, since to a person both are going on: goOn
// chooses between resuming and retrying by how the goal stands when it is read.
func resumeCommand(a *kit.App) *cobra.Command {
	var said pending.Said
	var r control.Request
	cmd := &cobra.Command{
		Use:   "resume <id>...",
		Short: "continue goals that are paused or ended without success",
		Long: "Continue goals. A paused goal continues where it stopped. A goal that used up its iterations, failed, or waits for budget or\n" +
			"for your files gets the same number of iterations again, and remembers the earlier ones.",
		Example:           "  pfl-forge goal resume reset-link\n  pfl-forge goal resume reset-link --with \"the mailer has a test double\"",
		Args:              kit.AtLeast(1, "the id of a goal"),
		ValidArgsFunction: complete.Intents(a, func(s *forge.Summary) bool { return isGoal(s) && pending.Waits(s) }, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Choose = onlyGoals(goOn(&said))
			return control.Send(cmd.Context(), a, args, &r)
		},
	}
	cmd.Flags().StringVar(&said.Text, "with", "", "`instructions` for the agents")
	cmd.Flags().Float64Var(&said.BudgetUSD, "budget", 0, "new total budget of the goal, in `USD`")
	kit.OutputFlag(cmd, &r.Format)
	return cmd
}

// onlyGoals returns a Chooser that refuses an intent without criteria.
// It comes before choose, so that no other message hides the real mistake.
func onlyGoals(choose control.Chooser) control.Chooser {
	return func(v *forge.View) (*pending.Choice, pending.Said, error) {
		if v.Goal == nil {
			return nil, pending.Said{}, notGoal(v.Intent.ID)
		}
		return choose(v)
	}
}

// goOn returns the Chooser by which an intent goes on, whatever it waits for: one that is
// paused is resumed, and any other one retried. It refuses where a person has to decide
// something else first.
//
// A copy of Retry is made for its word alone: a person who typed resume reads
// "resumed". Whether a retry is possible is decided by the rules, and not here.
func goOn(said *pending.Said) control.Chooser {
	return func(v *forge.View) (*pending.Choice, pending.Said, error) {
		id, s := v.Intent.ID, &v.Summary
		switch {
		case pending.Resume.Fits(s) && *said != (pending.Said{}):
			return nil, *said, fmt.Errorf("%s: is paused, and continues unchanged: omit --with and --budget", id)
		case pending.Resume.Fits(s):
			return pending.Resume, *said, nil
		case pending.Approve.Fits(s), pending.Answer.Fits(s):
			return nil, *said, fmt.Errorf("%s: %s; `%s`", id, render.Doing(s), pending.Commands(s)[0])
		}
		again := *pending.Retry
		again.Done = pending.Resume.Done
		return &again, *said, nil
	}
}

// notGoal returns the error for an intent without criteria.
func notGoal(id forge.IntentID) error {
	return fmt.Errorf("%s is not a goal: it has no criteria; see `pfl-forge show %s`, or `pfl-forge goal list` for the goals", id, id)
}
