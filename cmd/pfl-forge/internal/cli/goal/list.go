package goal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
)

// goals returns the goals of a project, sorted by id.
func goals(ctx context.Context, t *target.Target) ([]forge.Summary, error) {
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s forge.Summary) bool { return !isGoal(&s) }), nil
}

// listCommand returns the command goal list. With -o name it prints ids, a line
// each. An empty list is said on standard error, and is no error.
func listCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "list the goals and their progress",
		Example: "  pfl-forge goal list\n  pfl-forge goal list -o json",
		Args:    kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := target.Reader(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer t.Close()
			list, err := goals(cmd.Context(), t)
			if err != nil {
				return err
			}
			return printList(a, list, format)
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// item is a goal in a list, as programs read it. GoalCounts has the iterations
// and the criteria that are met. Costs are in US dollars, and of all iterations.
type item struct {
	ID               forge.IntentID   `json:"id"                yaml:"id"`
	Title            string           `json:"title"             yaml:"title"`
	Status           string           `json:"status"            yaml:"status"` // as that of a goal alone
	IntentStatus     forge.Status     `json:"intent_status"     yaml:"intent_status"`
	Waiting          forge.Waiting    `json:"waiting,omitempty" yaml:"waiting,omitempty"`
	Reason           string           `json:"reason,omitempty"  yaml:"reason,omitempty"`
	model.GoalCounts `yaml:",inline"` //nolint:embeddedstructfieldcheck // its place is that of its fields in the output
	Criteria         int              `json:"criteria_count"    yaml:"criteria_count"`
	Tokens           int64            `json:"tokens"            yaml:"tokens"`
	CachedTokens     int64            `json:"cached_tokens"     yaml:"cached_tokens"`
	CostUSD          float64          `json:"cost_usd"          yaml:"cost_usd"`
	CreatedAt        time.Time        `json:"created_at"        yaml:"created_at"`
	UpdatedAt        time.Time        `json:"updated_at"        yaml:"updated_at"`
}

// itemOf returns the item of a goal. The summary is that of a goal, so its Goal
// is not nil. Tokens are those that were not read from a cache.
func itemOf(s *forge.Summary) item {
	g := s.Goal
	return item{
		ID: s.Key.Intent, Title: s.Title, Status: goalview.StatusOf(s), IntentStatus: s.Status, Waiting: s.Waiting, Reason: s.Reason,
		GoalCounts: model.GoalProgressOf(g).GoalCounts, Criteria: g.Criteria,
		Tokens: render.Fresh(&s.Usage), CachedTokens: render.Cached(&s.Usage), CostUSD: s.Usage.CostUSD, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}

// printList prints goals in a format.
// The document is never null: without goals it is an empty list.
func printList(a *kit.App, all []forge.Summary, format render.Format) error {
	list := []item{}
	for i := range all {
		list = append(list, itemOf(&all[i]))
	}
	names := kit.Names(list, func(g *item) string { return string(g.ID) })
	return a.Print(format, list, names, func() error {
		if len(list) == 0 {
			a.Say("no goals yet")
			a.Say(`next: pfl-forge goal run "the task" --criterion "a condition that must hold in the end"`)
			return nil
		}
		return printTable(a, list, all, format == render.Wide)
	})
}

// printTable prints goals, each in a row, with what goes on with it.
// list and all have the same goals in the same order.
func printTable(a *kit.App, list []item, all []forge.Summary, wide bool) error {
	columns := render.Columns{Header: []string{"ID", "STATUS", "ITERATION", "MET", "AGE", "COST", "TITLE", "NOW"}, Shrink: 7, Also: 6}
	if wide {
		columns.Header = append(columns.Header, "INTENT", "TOKENS", "CACHED")
	}
	now := time.Now()
	for i := range list {
		g := &list[i]
		row := []string{
			string(g.ID), g.Status, fmt.Sprintf("%d/%d", g.Used, g.MaxIterations), fmt.Sprintf("%d/%d", g.Met, g.Criteria),
			render.Age(now.Sub(g.CreatedAt)), render.Cost(g.CostUSD), g.Title, render.Doing(&all[i]),
		}
		if wide {
			row = append(row, string(g.IntentStatus), render.Tokens(g.Tokens), render.Tokens(g.CachedTokens))
		}
		columns.Add(row...)
	}
	return a.Table(&columns)
}
