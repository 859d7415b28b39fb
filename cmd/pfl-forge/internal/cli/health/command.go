// Package health is the command health: it says how well the work of a project went, by week.
//
// It reads the journals itself, as costs and checks do, so that it tells the
// same where no runner is up, and with the ledger of a runner, so that a page
// of the console and this command never differ.
package health

import (
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

const help = `Show how the work went, by week: how runs of intents ended, how often changes were made again, how
long steps took and what was waited for, as durations that 50, 90 and 99 percent did not exceed. A week begins on
Monday, in UTC; what lasted counts in the week in which it ended. pfl-forge checks has the flaky commands.`

// Command returns the command health. The bounds of --weeks are those of the API: a client by HTTP
// is refused the same numbers.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	var weeks int
	cmd := &cobra.Command{
		Use:     "health",
		Short:   "show how the work went: ends, rework, durations and waits by week",
		Long:    help,
		Example: "  pfl-forge health\n  pfl-forge health --weeks 26 -o json",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req := figures.HealthRequest{Weeks: weeks}
			if wrong := req.Check(); len(wrong) > 0 || weeks < 1 {
				return kit.Usage(fmt.Errorf("--weeks: is %d; it can be 1 to %d", weeks, figures.MostHealthWeeks))
			}
			return show(cmd.Context(), a, req, format)
		},
	}
	cmd.Flags().IntVar(&weeks, "weeks", figures.HealthWeeks, "the `number` of weeks, this one included")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// show prints the health of the project: a row for each week and one for all of them, then how
// long waits and steps took. Where nothing was worked on, a sentence takes the place of the second
// table.
func show(ctx context.Context, a *kit.App, req figures.HealthRequest, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	h, err := readHealth(ctx, t, req)
	if err != nil {
		return err
	}
	names := kit.Names(h.Weeks, func(w *figures.HealthWeek) string { return w.Week })
	return a.Print(format, h, names, func() error {
		if err := weeks(a, &h); err != nil {
			return err
		}
		if len(h.Total.Waits)+len(h.Total.Steps) == 0 {
			a.Say("nothing was worked on in these weeks")
			return nil
		}
		return durations(a, &h.Total)
	})
}

// readHealth returns the health of the project. By HTTP a runner adds up the
// journals; otherwise this program does, with the same ledger. A repository in
// which nothing was ever submitted has no journal: its weeks are there, and empty.
func readHealth(ctx context.Context, t *target.Target, req figures.HealthRequest) (figures.Health, error) {
	ledger := health.Ledger{Keep: figures.MostHealthWeeks}
	switch {
	case t.ByHTTP():
		return t.Health(ctx, req.Weeks)
	case t.Bus != nil:
		if err := read(ctx, t.Bus.Journal, t.Project, &ledger); err != nil {
			return figures.Health{}, err
		}
	}
	h := ledger.Health(req, time.Now())
	// Command lines of checks are cut before a word that may hold a secret, as a runner does it.
	figures.Shown(h.Checks)
	return h, nil
}

// read adds the journals of a project to a ledger. Both kinds of journals count: steps of the
// project, such as merges, are in no intent's.
func read(ctx context.Context, j *journal.Journal, project forge.ProjectID, into *health.Ledger) error {
	_, err := j.Records(ctx, project, 0, into.Add)
	if err == nil {
		_, err = j.ProjectRecords(ctx, project, 0, into.Add)
	}
	return err
}

// weeks prints a row for each week, and one for all. The last row is the sum, and stands out by
// the word in place of a date. CHANGES counts changes that were made, MADE AGAIN those among them
// that had been made before for the same task.
func weeks(a *kit.App, h *figures.Health) error {
	columns := render.Columns{Header: []string{
		"WEEK OF", "DONE", "FAILED", "REJECTED", "CANCELLED", "CHANGES", "MADE AGAIN", "REVIEWS REJECTED", "VERIFY FAILED", "CONFLICTS",
	}}
	for _, w := range append(h.Weeks, h.Total) {
		if w.Week == "" {
			w.Week = "all"
		}
		row := []string{w.Week}
		for _, n := range []int{w.Done, w.Failed, w.Rejected, w.Cancelled, w.Made, w.MadeAgain, w.ReviewsRejected, w.VerifyFailed, w.Conflicts} {
			row = append(row, fmt.Sprint(n))
		}
		columns.Add(row...)
	}
	return a.Table(&columns)
}

// durations prints how long waits and steps took over all weeks: how many there were, and the
// durations that 50, 90 and 99 of 100 did not exceed. Percentiles of weeks cannot be added up, so
// these are of the total, which has its own.
func durations(a *kit.App, w *figures.HealthWeek) error {
	columns := render.Columns{Header: []string{"WAITED FOR, OR STEP", "COUNT", "50%", "90%", "99%"}}
	took := func(seconds float64) string { return render.Took(time.Duration(seconds * float64(time.Second))) }
	for _, one := range []struct {
		before string
		list   []figures.Durations
	}{{"waited: ", w.Waits}, {"", w.Steps}} {
		for _, d := range one.list {
			columns.Add(one.before+d.Key, fmt.Sprint(d.Count), took(d.P50), took(d.P90), took(d.P99))
		}
	}
	return a.Table(&columns)
}
