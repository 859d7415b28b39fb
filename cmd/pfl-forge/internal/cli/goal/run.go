package goal

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/create"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/run"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const runHelp = `Work on a goal until every criterion is met or no iterations are left, and show the
progress. Other work continues meanwhile; the command ends when the goal is finished or
waits for you, after the agents that work on something else have finished what they do.
The same command again continues a goal that is in progress. With --server, submit the goal to an organisation's pfl-forge and follow it.

The goal is a file (default: task.yaml in the repository's folder; - is standard input), or
a text with one --criterion for each condition, and one --check for each check of the
project that must pass.

Exit codes: 0 every criterion is met, 1 usage or internal error, 2 the iterations are used
up, or it ended with an error or was cancelled, 3 it waits for a person, 130 interrupted.`

// runFlags are the flags of goal run. criteria and the checks in fields make a
// goal of a text. maxIterations and model are 0 and empty unless given, and then
// count more than the file's. id is empty for one that is made from the title.
// With dryRun nothing is stored, and with detach nothing is worked on here.
type runFlags struct {
	criteria       []string
	maxIterations  int
	model          string
	id             string
	fields         create.Fields
	detach, dryRun bool
	format         render.Format
}

// runCommand returns the command goal run. It is create and run in one, for a
// person or a script that waits for the end of exactly this goal: the exit code
// is the goal's own, whatever else the run works on.
func runCommand(a *kit.App) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [<task.yaml> | <text> --criterion <condition>... --check <name>...]",
		Short: "work on a goal until every criterion is met",
		Long:  runHelp,
		Example: `  pfl-forge goal run
  pfl-forge goal run goals/reset-link.yaml --max-iterations 5
  pfl-forge goal run "Add a reset link" --criterion "the login page links to the reset form" --criterion "a test covers an unknown address"
  pfl-forge goal run "Make the parser's tests pass" --check tests`,
		Args: kit.Between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-iterations") && (f.maxIterations < 1 || f.maxIterations > forge.MaxIterations) {
				return kit.Usage(fmt.Errorf("--max-iterations: is %d; it can be 1 to %d", f.maxIterations, forge.MaxIterations))
			}
			return pursueNew(cmd.Context(), a, args, &f)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.criteria, "criterion", nil, "a `condition` that must hold in the end; given with a text, not with a file; may be repeated")
	flags.IntVar(&f.maxIterations, "max-iterations", 0, "maximum number of iterations, 1 to 100; default: the file's, or 10")
	flags.StringVar(&f.model, "model", "", "model of the agent that works on it; default: the project's")
	flags.StringVar(&f.id, "id", "", "id of the goal; default: made from the text's first line")
	f.fields.Add(cmd, "agent", "risk", "budget_usd")
	f.fields.AddChecks(cmd, complete.Checks(a))
	flags.BoolVarP(&f.detach, "detach", "d", false, "submit the goal, and leave the work to the next run or the one in progress")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the intent and submit nothing")
	kit.OutputFlag(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("detach", "dry-run")
	return cmd
}

// pursueNew reads a goal, submits it, works on it, and prints what came of it.
// A call that was cut off can be given again with the same words: it goes on
// with the goal that is under way, and begins no other one beside it.
//
// Nothing is stored before all that can be checked is checked. Exit codes are
// returned as kit.Exit: see runHelp, and outcome.
func pursueNew(ctx context.Context, a *kit.App, args []string, f *runFlags) error {
	g, err := readGoal(a, args, f)
	if err != nil {
		return err
	}
	for _, n := range g.Notices {
		a.Say("%s", kit.Safe(n))
	}
	intent, err := intentOf(g, f)
	if err != nil {
		return err
	}
	t, err := target.Open(ctx, a, f.dryRun)
	if err != nil {
		return err
	}
	defer t.Close()
	var going forge.IntentID // the goal that is in progress under the id that was given
	if f.id != "" && !f.dryRun && !f.detach {
		if going, err = sameGoal(ctx, t, intent, forge.IntentID(f.id)); err != nil {
			return err
		}
	}
	if going == "" {
		if err := create.Prepare(ctx, t, intent); err != nil {
			return err
		}
	}
	var base *local.Base
	if t.Repo != nil && !t.Remote {
		if base, err = goalBase(ctx, a, t, intent); err != nil {
			return err
		}
	}
	switch {
	case f.dryRun:
		return create.Print(a, intent, f.format)
	case f.detach:
		return create.Submit(ctx, a, t, intent, f.format)
	}
	if going != "" {
		a.Say("%s is in progress: continuing it", a.Style(a.Err).Bold(string(going)))
	} else if going, err = submit(ctx, a, t, intent, f.id == ""); err != nil {
		return err
	}
	o, err := pursue(ctx, a, t, base, going)
	if err != nil {
		return err
	}
	if o.Interrupted {
		run.SayInterrupted(a, o)
		return kit.ExitInterrupted
	}
	return conclude(ctx, a, going, f.format)
}

// submit submits a goal and returns its id, or with reuse the id of one under
// way that asks for the same. The id goes to standard error, because the data
// of the command is the outcome, and that comes at the end.
func submit(ctx context.Context, a *kit.App, t *target.Target, i *forge.Intent, reuse bool) (forge.IntentID, error) {
	if reuse {
		switch id, err := sameGoal(ctx, t, i, ""); {
		case err != nil:
			return "", err
		case id != "":
			a.Say("%s asks for the same and is in progress: continuing it (use --id to create another one)", a.Style(a.Err).Bold(string(id)))
			return id, nil
		}
	}
	if _, err := create.Store(ctx, t, i); err != nil {
		return "", err
	}
	a.Say("%s: %s", a.Style(a.Err).Bold(string(i.ID)), kit.Safe(i.Title))
	return i.ID, nil
}

// sameGoal returns the id of a goal under way with the same text and criteria, empty if there is
// none. With an id it looks at that goal alone, and an error says how it goes on if it has ended.
//
// Title, text, criteria and checks have to be equal; options such as the model
// or the number of iterations need not be. Titles are compared first because
// the list has them, and each other goal would have to be read.
func sameGoal(ctx context.Context, t *target.Target, i *forge.Intent, named forge.IntentID) (forge.IntentID, error) {
	list, err := goals(ctx, t)
	if err != nil {
		return "", err
	}
	for n := range list {
		s := &list[n]
		if s.Title != i.Title || named == "" && s.Goal.Status != "" || named != "" && s.Key.Intent != named {
			continue
		}
		v, err := t.View(ctx, s.Key.Intent)
		if err != nil {
			return "", err
		}
		if v.Intent.Body != i.Body || !slices.Equal(v.Intent.Criteria, i.Criteria) || !slices.Equal(v.Intent.Checks, i.Checks) {
			continue
		}
		switch s.Goal.Status {
		case forge.LoopCompleted, forge.LoopCancelled:
			return "", fmt.Errorf("id: %s is this goal, and it is %s; begin it again with another id", v.Intent.ID, s.Goal.Status)
		case forge.LoopMaxIterations, forge.LoopError:
			return "", fmt.Errorf("id: %s is this goal, and it has ended: %s; `pfl-forge goal resume %s` continues it", v.Intent.ID, s.Goal.Status, v.Intent.ID)
		}
		return v.Intent.ID, nil
	}
	return "", nil
}

// pursue works on a goal, or shows who does, until it can go on no more. It closes the
// target, because a run here needs the store.
// base is nil for an organisation's goal, which is only followed here.
func pursue(ctx context.Context, a *kit.App, t *target.Target, base *local.Base, id forge.IntentID) (*local.Outcome, error) {
	if t.Remote {
		return run.Follow(ctx, a, t, id)
	}
	t.Close()
	return run.Work(ctx, a, t.Repo, base, &run.Options{Only: id})
}

// conclude prints the outcome of a goal, and returns the exit code. It reads
// the goal anew, since the run's outcome has only the count of the criteria.
// The document goes to standard output, the next command to standard error.
func conclude(ctx context.Context, a *kit.App, id forge.IntentID, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	d, err := read(ctx, t, string(id))
	if err != nil {
		return err
	}
	if format.Data() || format == render.Name {
		if err := goalview.Print(a, d, format); err != nil {
			return err
		}
		return outcome(d)
	}
	goalview.PrintHead(a, d)
	switch {
	case d.Waiting == forge.WaitingFailed:
		a.Say("next: pfl-forge goal resume %s --with 'instructions', or pfl-forge goal status %s", id, id)
	case len(d.Commands) > 0:
		a.Say("next: %s", d.Commands[0])
	}
	return outcome(d)
}

// outcome returns the exit code of a goal as an error, nil if all its criteria
// are met. A script tells by it whether a person is needed: a goal that waits
// is another case than one that has failed for good.
func outcome(d *goalview.Document) error {
	switch d.Status {
	case string(forge.LoopCompleted):
		return nil
	case goalview.Waiting, goalview.Running: // at rest: something that it waits for waits for a person
		return kit.ExitWaiting
	}
	return kit.ExitFailed
}
