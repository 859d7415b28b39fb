// Package checks is the command checks: it says of each command that decides
// over changes how often it ran, failed, and failed for no reason.
//
// It decides nothing. Whose fault a failure is was decided when it happened (package
// verdict); here the journals are read and added up, so that a person sees which
// command is worth mending, and which one takes the time. There is no state of its own:
// what ran before this command existed is counted as well, as far as it was reported.
package checks

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/runner/health"
)

const help = `List the commands that decide over changes, verify commands and checks, with what the journals say
of them: how often they ran and failed, how often they were flaky, and how long they take.

Flaky is a command that passed and failed on the same files, and not because of the change.
Its rate is the share of the changes that ran the command. RED counts how often it also failed
on the base branch alone. A command is shown up to the first word that may hold a secret.`

// Command returns the command checks.
func Command(a *kit.App) *cobra.Command {
	var since string
	var format render.Format
	cmd := &cobra.Command{
		Use:     "checks",
		Short:   "list verify commands and checks: runs, failures, how flaky they are",
		Long:    help,
		Example: "  pfl-forge checks\n  pfl-forge checks --since 168h -o json",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			after, err := kit.ParseSince(since, time.Now())
			if err != nil {
				return kit.Usage(fmt.Errorf("--since: %w", err))
			}
			return list(cmd.Context(), a, after, format)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only runs that were reported after a `time` such as 24h or 2026-03-01")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// list prints a row for each command, those without a name in pfl-forge.yaml as "verify". It reads
// the journals of the whole project: they are small beside what the commands themselves take.
//
// --since is compared with the time at which a run was reported, and not with that of the intent.
// A project without a journal has no rows, which is no error.
func list(ctx context.Context, a *kit.App, since time.Time, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	book := health.Book{Since: since}
	if t.Bus != nil {
		err := t.Bus.Journal.Each(ctx, forge.Key{Project: t.Project}, func(e *journal.Entry) error {
			if e.Record != nil {
				book.Add(e.Key, e.Record)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	rows := book.Rows()
	// Command lines are cut before a word that may hold a secret.
	figures.Shown(rows)
	names := kit.Names(rows, func(r *figures.CheckStat) string { return cmp.Or(r.Name, r.Command) })
	return a.Print(format, rows, names, func() error {
		if len(rows) == 0 {
			a.Say("no verify command or check has run yet")
			return nil
		}
		columns := render.Columns{Header: []string{"CHECK", "RUNS", "FAILED", "FLAKY", "RATE", "RED", "MEDIAN", "LAST FLAKY", "COMMAND"}, Shrink: 8}
		for i := range rows {
			r := &rows[i]
			last := ""
			if !r.FlakyAt.IsZero() {
				last = render.ShortCommit(r.FlakyCommit) + ", " + render.Age(time.Since(r.FlakyAt)) + " ago"
			}
			columns.Add(cmp.Or(r.Name, "verify"), fmt.Sprint(r.Runs), fmt.Sprint(r.Failed), fmt.Sprint(r.Flaky), fmt.Sprintf("%.0f%%", 100*r.FlakyRate),
				fmt.Sprint(r.Red), render.Took(time.Duration(r.MedianSeconds*float64(time.Second))), last, r.Command)
		}
		return a.Table(&columns)
	})
}
