package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/costs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const costsHelp = `Show where the money went: tokens, calls, time and US dollars of every attempt that
called an agent, added up from the journals. What runs now counts when it ends;
pfl-forge status --watch shows it until then.

Budgets of pfl-forge.yaml and of intents are shown with what is left of them.`

type costsFlags struct {
	by, since, until string
	format           render.Format
}

func (a *app) costsCommand() *cobra.Command {
	var f costsFlags
	cmd := &cobra.Command{
		Use:     "costs",
		Short:   "show where the money went",
		Long:    costsHelp,
		Example: "  pfl-forge costs\n  pfl-forge costs --by day --since 168h\n  pfl-forge costs --by model -o json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.costs(cmd.Context(), &f) },
	}
	var bys []string
	for _, by := range costs.Bys() {
		bys = append(bys, string(by))
	}
	flags := cmd.Flags()
	flags.StringVar(&f.by, "by", string(costs.ByIntent), "a row for each `what`: "+strings.Join(bys, ", "))
	flags.StringVar(&f.since, "since", "", "only what ended later: a `time` such as 24h or 2026-03-01")
	flags.StringVar(&f.until, "until", "", "only what ended before a `time`")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(bys, cobra.ShellCompDirectiveNoFileComp))
	output(cmd, &f.format)
	return cmd
}

func (a *app) costs(ctx context.Context, f *costsFlags) error {
	now := time.Now()
	by, err := costs.ParseBy(f.by)
	if err != nil {
		return usageError{fmt.Errorf("--by: %w", err)}
	}
	q := costs.Query{By: by}
	if q.Since, err = parseSince(f.since, now); err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	if q.Until, err = parseSince(f.until, now); err != nil {
		return usageError{fmt.Errorf("--until: %w", err)}
	}
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	book := new(costs.Book)
	if t.bus != nil {
		project := t.project
		if by == costs.ByProject {
			project = ""
		}
		if book, err = costs.Read(ctx, t.bus, project); err != nil {
			return err
		}
	}
	rep := book.Report(q, now)
	switch {
	case f.format.Data():
		return f.format.Write(a.out, rep)
	case f.format == render.Name:
		for i := range rep.Rows {
			fmt.Fprintln(a.out, rep.Rows[i].Key)
		}
		return nil
	case len(rep.Rows) == 0:
		a.say("no agent was called%s", within(&q))
		return nil
	}
	return a.costsTable(&rep)
}

func within(q *costs.Query) string {
	if q.Since.IsZero() && q.Until.IsZero() {
		return ""
	}
	return " in that time"
}

func (a *app) costsTable(rep *costs.Report) error {
	columns := render.Columns{
		Header: []string{strings.ToUpper(string(rep.By)), "COST", "IN", "OUT", "CACHE READ", "CACHE WRITE", "CALLS", "TURNS", "TIME"},
	}
	if rep.By == costs.ByIntent {
		columns.Header = append(columns.Header, "LEFT", "TITLE")
		columns.Shrink = len(columns.Header) - 1
	}
	for _, row := range append(rep.Rows, rep.Total) {
		cells := []string{row.Key, dollars(row.CostUSD)}
		for _, n := range []int64{row.InputTokens, row.OutputTokens, row.CacheReadTokens, row.CacheWriteTokens, row.Calls, row.Turns} {
			cells = append(cells, strconv.FormatInt(n, 10))
		}
		cells = append(cells, render.Took(time.Duration(row.Seconds*float64(time.Second))))
		if rep.By == costs.ByIntent {
			left := ""
			if row.LeftUSD != nil {
				left = fmt.Sprintf("%s of %s", dollars(*row.LeftUSD), dollars(*row.BudgetUSD))
			}
			cells = append(cells, left, row.Title)
		}
		columns.Add(cells...)
	}
	if err := columns.Write(a.out, width(a.out), a.style(a.out)); err != nil {
		return err
	}
	for _, b := range rep.Budgets {
		text := fmt.Sprintf("budget of the %s: %s of %s left", b.Of, dollars(b.LeftUSD), dollars(b.BudgetUSD))
		if len(rep.Budgets) > 0 && rep.By == costs.ByProject {
			text = string(b.Project) + ": " + text
		}
		a.say("%s", text)
	}
	return nil
}

// dollars returns an amount to the hundredth of a cent: calls are cheap.
func dollars(usd float64) string {
	if usd < 0 {
		return fmt.Sprintf("-$%.4f", -usd)
	}
	return fmt.Sprintf("$%.4f", usd)
}
