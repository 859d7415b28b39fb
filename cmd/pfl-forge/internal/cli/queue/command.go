// Package queue is the command queue: it shows the merge queue of a project,
// with estimates, and what keeps all of its work waiting.
//
// It prints a document that a runner makes on request (document, bus/requests), by NATS or
// HTTP alike, and computes nothing itself: the console and the API show the same numbers.
package queue

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
)

const help = `Show the changes in the merge queue, in the order in which they are merged: how far each is, what it
waits for, and about when it is merged. An estimate assumes that each trial and each merge takes as long
as the last ones, and that all pass; while something keeps the project waiting there are none.`

// Command returns the command queue. It has no filter: a queue is as long as the changes that
// wait, and -o json has all that is known.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "queue",
		Short:   "show the merge queue, with estimates, and what holds it up",
		Long:    help,
		Example: "  pfl-forge queue\n  pfl-forge queue -o json",
		Args:    kit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), a, format) },
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// show prints the queue of the project. What holds up all of it comes first and to standard error,
// so that a script that reads the table is not disturbed: a pause, an account that is closed, an
// origin that is away, a red base branch. An empty queue is an empty list for programs, and a
// sentence for people.
func show(ctx context.Context, a *kit.App, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	q, err := t.Queue(ctx)
	if err != nil {
		return err
	}
	names := kit.Names(q.Changes, func(c *model.QueuedChange) string { return string(c.Task) })
	return a.Print(format, q, names, func() error {
		if q.Paused {
			a.Say("%s", a.Style(a.Err).Attention("the project is paused; next: pfl-forge resume --all"))
		}
		for _, f := range q.Facts {
			held := document.Account{Agent: f.Of, Reason: f.Fact, Message: f.Why, Since: f.Since, Until: f.Until}
			a.Say("%s", a.Style(a.Err).Attention(held.Line()))
		}
		if len(q.Changes) == 0 {
			a.Say("no change is in the merge queue")
			return nil
		}
		return table(a, q.Changes)
	})
}

// table prints changes, a row for each. One that is not in line yet has no place, and one without
// an estimate no time: a 0 would read as the front of the queue, and as now.
func table(a *kit.App, list []model.QueuedChange) error {
	columns := render.Columns{Header: []string{"PLACE", "TASK", "STATE", "MERGED IN", "NOW"}, Shrink: 4}
	for i := range list {
		c := &list[i]
		place, left := "", ""
		if c.Position > 0 {
			place = strconv.Itoa(c.Position)
		}
		if c.Seconds != nil {
			left = "about " + render.Took(time.Duration(*c.Seconds)*time.Second)
		}
		columns.Add(place, string(c.Task), string(c.State), left, c.Words)
	}
	return a.Table(&columns)
}
