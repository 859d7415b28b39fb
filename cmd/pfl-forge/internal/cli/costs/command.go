package costs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/spending"
)

const costsHelp = `Show what agents cost: tokens, calls, time and US dollars of every attempt that called
an agent, added up from the journals. Attempts in progress count when they end;
pfl-forge status --watch shows them until then.

Budgets of pfl-forge.yaml and of intents are shown with the amount left.`

// flags are the flags of costs, as they were typed. Since and until are points in time, or
// durations before now; empty for no bound.
type flags struct {
	by, since, until string
	format           render.Format
}

// Command returns the command costs.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:     "costs",
		Short:   "show what agents cost",
		Long:    costsHelp,
		Example: "  pfl-forge costs\n  pfl-forge costs --by day --since 168h\n  pfl-forge costs --by model -o json",
		Args:    kit.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return costs(cmd.Context(), a, &f) },
	}
	var bys []string
	for _, by := range document.CostGroups() {
		bys = append(bys, string(by))
	}
	set := cmd.Flags()
	set.StringVar(&f.by, "by", string(document.CostsByIntent), "one row for each `group`: "+strings.Join(bys, ", "))
	set.StringVar(&f.since, "since", "", "only attempts that ended after a `time` such as 24h or 2026-03-01")
	set.StringVar(&f.until, "until", "", "only attempts that ended before a `time`")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(bys, cobra.ShellCompDirectiveNoFileComp))
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// costs prints the costs of agents, with a row for each group that --by names. They are
// added up from the journals by this program, of all projects where they are asked for by
// project. The pages of a browser ask a runner instead, which adds them up the same way.
func costs(ctx context.Context, a *kit.App, f *flags) error {
	now := time.Now()
	by, err := document.ParseCostGroup(f.by)
	if err != nil {
		return kit.Usage(fmt.Errorf("--by: %w", err))
	}
	q := document.CostsRequest{By: by}
	if q.Since, err = kit.ParseSince(f.since, now); err != nil {
		return kit.Usage(fmt.Errorf("--since: %w", err))
	}
	if q.Until, err = kit.ParseSince(f.until, now); err != nil {
		return kit.Usage(fmt.Errorf("--until: %w", err))
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	rep, err := reported(ctx, t, q, now)
	if err != nil {
		return err
	}
	names := kit.Names(rep.Rows, func(r *document.CostRow) string { return r.Key })
	return a.Print(f.format, rep, names, func() error {
		if len(rep.Rows) == 0 {
			a.Say("no agent calls%s; recipes and commands cost nothing", within(&q))
			return nil
		}
		return printTable(a, &rep)
	})
}

// reported returns the usage of agents. By HTTP it is told by a runner. In a repository in which
// nothing was ever submitted the report is empty.
func reported(ctx context.Context, t *target.Target, q document.CostsRequest, now time.Time) (rep document.Costs, err error) {
	var ledger spending.Ledger
	var sums []forge.Summary
	switch {
	case t.ByHTTP():
		return t.Costs(ctx, q)
	case t.Bus != nil:
		project := t.Project
		// Only this group is about more than one project.
		if q.By == document.CostsByProject {
			project = ""
		}
		if err := read(ctx, t.Bus.Journal, project, &ledger); err != nil {
			return rep, err
		}
		if sums, err = t.Bus.Journal.ProjectSummaries(ctx, project); err != nil {
			return rep, err
		}
	}
	return ledger.Costs(q, sums, now), nil
}

// read adds the journals of the intents of a project to a ledger, or those of all projects if it
// is empty.
func read(ctx context.Context, j *journal.Journal, project forge.ProjectID, into *spending.Ledger) error {
	_, err := j.Records(ctx, project, 0, into.Add)
	return err
}

// within returns the end of a sentence that says whether only some time was asked for.
func within(q *document.CostsRequest) string {
	if q.Since.IsZero() && q.Until.IsZero() {
		return ""
	}
	return " in this period"
}

// printTable prints a report as a table, and what is left of budgets. The last row
// is the sum of all. What is left of a budget of a project or a day goes to standard
// error, below the table, so that a script that cuts columns does not read it.
func printTable(a *kit.App, rep *document.Costs) error {
	columns := render.Columns{
		Header: []string{strings.ToUpper(string(rep.By)), "COST", "IN", "OUT", "CACHE READ", "CACHE WRITE", "CALLS", "TURNS", "TIME"},
	}
	if rep.By == document.CostsByIntent {
		columns.Header = append(columns.Header, "LEFT", "TITLE")
		columns.Shrink = len(columns.Header) - 1
	}
	for _, row := range append(rep.Rows, rep.Total) {
		cells := []string{row.Key, dollars(row.CostUSD)}
		for _, n := range []int64{row.InputTokens, row.OutputTokens, row.CacheReadTokens, row.CacheWriteTokens, row.Calls, row.Turns} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		cells = append(cells, render.Took(time.Duration(row.Seconds*float64(time.Second))))
		if rep.By == document.CostsByIntent {
			left := ""
			if row.LeftUSD != nil {
				left = fmt.Sprintf("%s of %s", dollars(*row.LeftUSD), dollars(*row.BudgetUSD))
			}
			cells = append(cells, left, row.Title)
		}
		columns.Add(cells...)
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	for _, b := range rep.Budgets {
		text := fmt.Sprintf("budget of the %s: %s of %s left", b.Of, dollars(b.LeftUSD), dollars(b.BudgetUSD))
		if len(rep.Budgets) > 0 && rep.By == document.CostsByProject {
			text = string(b.Project) + ": " + text
		}
		a.Say("%s", text)
	}
	return nil
}

// dollars returns an amount to the hundredth of a cent, because a call may cost less than a
// cent.
func dollars(usd float64) string {
	if usd < 0 {
		return fmt.Sprintf("-$%.4f", -usd)
	}
	return fmt.Sprintf("$%.4f", usd)
}
