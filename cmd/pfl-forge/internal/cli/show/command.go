// Package show is the command that shows everything about one intent or one
// task: what was asked for, what became of it, every attempt and review, and
// the change itself.
//
// The document is put together from the intent's journal, the usage of its
// attempts (package costs) and its goal (package goalview). Only the diff, of a
// task that is shown alone, is read from git.
//
// command.go reads and puts together, document.go has the types that programs read, intent.go
// and task.go print. The inbox and the live view call Show, Diff and TaskOf. Everything is
// printed to standard output; that a journal is broken, or a part cannot be read, is said on
// standard error. The tests of the command are scripts in cmd/pfl-forge/testdata/script.
package show

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Command returns the command show.
// It changes nothing, and takes the id of an intent or of a task without a flag to tell them apart.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:               "show <id>",
		Short:             "show everything about an intent or a task",
		Example:           "  pfl-forge show reset-link\n  pfl-forge show reset-link-001",
		Args:              kit.Between(1, 1, "the id of an intent or a task"),
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return Show(cmd.Context(), a, args[0], format) },
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// Show prints an intent, or the task that the argument names, in a format.
//
// A broken chain is told first and ends nothing: a person has to see the journal to repair
// it. -o name has no meaning here, and prints the text. Where this process owns the store
// no run is active, and the text says of an intent that could go on that it waits for one.
func Show(ctx context.Context, a *kit.App, arg string, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	v, task, err := t.Find(ctx, arg)
	if err != nil {
		return err
	}
	if at := t.Broken(ctx, v.Intent.ID); at != "" {
		a.Say("what is shown may be wrong, and nothing is decided on it: %s; see `pfl-forge audit-log verify %s`", at, v.Intent.ID)
	}
	if task != nil {
		return showTask(ctx, a, t, v, task, format)
	}
	d := intentOf(v)
	work, err := t.Work(ctx, v.Intent.ID)
	if err != nil {
		return err
	}
	d.setAccount(&work)
	place(ctx, a, t, &d)
	d.Trace = t.Trace(v.Intent.ID, v.Summary.Run)
	if v.Goal != nil {
		if d.Loop, err = goalview.Read(ctx, t, v); err != nil {
			return err
		}
	}
	if format.Data() {
		return format.Write(a.Out, d)
	}
	if t.Owner {
		render.WithoutRun(&v.Summary)
		d.Activity = v.Summary.Activity
	}
	var said document.Said
	if err := printIntent(a, &d, &said); err != nil {
		return err
	}
	if err := logs.Timeline(ctx, a, t, v.Intent.ID, said.Rest); err != nil {
		return err
	}
	itself := "pfl-forge show " + string(v.Intent.ID)
	a.Commands(slices.DeleteFunc(slices.Clone(d.Commands), func(c string) bool { return c == itself }))
	return nil
}

// place fills in where the tasks of an intent are in the merge queue. All else
// is shown also to a person who may not read that. An error of reading is told,
// and the intent is shown without its places.
func place(ctx context.Context, a *kit.App, t *target.Target, d *Intent) {
	projects, err := t.Projects(ctx)
	if err != nil {
		a.Say("cannot read the merge queue: %v", err)
	}
	list := []document.Item{d.Item}
	document.Place(projects, list)
	d.Item = list[0]
}
