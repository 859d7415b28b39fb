package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const goalHelp = `A goal is a task with criteria. An agent works on it, another one sums up what it did, and
a third one, which has no tools, judges every criterion from the change itself. That is an
iteration. Iterations follow, each knowing what the ones before tried, until every
criterion is met, and the change lands, or until they are used up.`

func (a *app) goalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "goal",
		Short: "work on something until its criteria are met",
		Long:  goalHelp,
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.goalRunCommand(), a.goalStatusCommand(), a.goalListCommand(), a.goalCancelCommand(), a.goalResumeCommand())
	return cmd
}

func (a *app) goalStatusCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:               "status <id>",
		Aliases:           []string{"show"},
		Short:             "show the criteria and iterations of a goal, and its last judgment",
		Example:           "  pfl-forge goal status reset-link\n  pfl-forge goal status reset-link -o json",
		Args:              between(1, 1, "the id of a goal"),
		ValidArgsFunction: a.complete(isGoal, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer t.close()
			d, err := t.goal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.printGoal(d, format)
		},
	}
	output(cmd, &format)
	return cmd
}

// goal returns a goal by its id.
func (t *target) goal(ctx context.Context, arg string) (*goalDoc, error) {
	id, err := forge.ParseIntentID(arg)
	if err != nil {
		return nil, usageError{err}
	}
	v, err := t.view(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case v.Goal == nil:
		return nil, notGoal(id)
	}
	attempts, err := t.attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	d := goalOf(v, attempts)
	if t.remote {
		d.HistoryPath, d.KnowledgePath, d.RawLogDir = "", "", "" // there are no files where nobody has a desk
	}
	return &d, nil
}

func isGoal(s *forge.Summary) bool { return s.Goal != nil }

// goals returns the goals of a project, sorted by id.
func (t *target) goals(ctx context.Context) ([]forge.Summary, error) {
	all, err := t.summaries(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(s forge.Summary) bool { return !isGoal(&s) }), nil
}

func (a *app) goalListCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "list the goals and how far they are",
		Example: "  pfl-forge goal list\n  pfl-forge goal list -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer t.close()
			list, err := t.goals(cmd.Context())
			if err != nil {
				return err
			}
			return a.printGoals(list, format)
		},
	}
	output(cmd, &format)
	return cmd
}

// goalItem is a goal in a list, as programs read it.
type goalItem struct {
	ID            forge.IntentID `json:"id"                yaml:"id"`
	Title         string         `json:"title"             yaml:"title"`
	Status        string         `json:"status"            yaml:"status"` // as that of a goal alone
	IntentStatus  forge.Status   `json:"intent_status"     yaml:"intent_status"`
	Waiting       forge.Waiting  `json:"waiting,omitempty" yaml:"waiting,omitempty"`
	Reason        string         `json:"reason,omitempty"  yaml:"reason,omitempty"`
	Iteration     int            `json:"iteration"         yaml:"iteration"`
	Used          int            `json:"iterations_used"   yaml:"iterations_used"`
	MaxIterations int            `json:"max_iterations"    yaml:"max_iterations"`
	Met           int            `json:"criteria_met"      yaml:"criteria_met"`
	Criteria      int            `json:"criteria_count"    yaml:"criteria_count"`
	Tokens        int64          `json:"tokens"            yaml:"tokens"`
	CostUSD       float64        `json:"cost_usd"          yaml:"cost_usd"`
	CreatedAt     time.Time      `json:"created_at"        yaml:"created_at"`
	UpdatedAt     time.Time      `json:"updated_at"        yaml:"updated_at"`
}

func goalItemOf(s *forge.Summary) goalItem {
	g := s.Goal
	return goalItem{
		ID: s.Key.Intent, Title: s.Title, Status: goalStatus(s), IntentStatus: s.Status, Waiting: s.Waiting, Reason: s.Reason,
		Iteration: g.Iteration, Used: g.Used, MaxIterations: g.Most, Met: g.Met, Criteria: g.Criteria,
		Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, CostUSD: s.Usage.CostUSD, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
}

func (a *app) printGoals(all []forge.Summary, format render.Format) error {
	list := []goalItem{}
	for i := range all {
		list = append(list, goalItemOf(&all[i]))
	}
	switch {
	case format.Data():
		return format.Write(a.out, list)
	case format == render.Name:
		for i := range list {
			fmt.Fprintln(a.out, list[i].ID)
		}
		return nil
	case len(list) == 0:
		a.say("no goals yet")
		a.say(`next: pfl-forge goal run "what is to be done" --criterion "what holds in the end"`)
		return nil
	}
	columns := render.Columns{Header: []string{"ID", "STATUS", "ITERATION", "MET", "AGE", "COST", "NOW"}, Shrink: 6}
	if format == render.Wide {
		columns.Header = append(columns.Header, "INTENT", "TOKENS", "TITLE")
	}
	now := time.Now()
	for i := range list {
		g := &list[i]
		row := []string{
			string(g.ID), g.Status, fmt.Sprintf("%d/%d", g.Used, g.MaxIterations), fmt.Sprintf("%d/%d", g.Met, g.Criteria),
			render.Age(now.Sub(g.CreatedAt)), render.Cost(g.CostUSD), doing(&all[i]),
		}
		if format == render.Wide {
			row = append(row, string(g.IntentStatus), render.Tokens(g.Tokens), g.Title)
		}
		columns.Add(row...)
	}
	return columns.Write(a.out, width(a.out), a.style(a.out))
}

func (a *app) goalCancelCommand() *cobra.Command {
	var s scope
	cmd := &cobra.Command{
		Use:               "cancel <id>...",
		Short:             "stop goals for good",
		Long:              "Stop goals for good. The commits of all iterations, and what they found out, are kept.",
		Example:           "  pfl-forge goal cancel reset-link --reason \"not now\"",
		Args:              atLeast(1, "the id of a goal"),
		ValidArgsFunction: a.complete(isGoal, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.control(cmd.Context(), args, &s, ofGoals(s.cancelled))
		},
	}
	cmd.Flags().StringVar(&s.reason, "reason", "", "why, for the history")
	output(cmd, &s.format)
	return cmd
}

func (a *app) goalResumeCommand() *cobra.Command {
	var s scope
	var again forge.Retry
	cmd := &cobra.Command{
		Use:   "resume <id>...",
		Short: "go on with goals that are paused or ended without success",
		Long: "Go on with goals. One that is paused goes on where it stopped. One that used up its iterations, failed, or waits for money or\n" +
			"for your files, gets as many iterations once more; it remembers those that it had.",
		Example:           "  pfl-forge goal resume reset-link\n  pfl-forge goal resume reset-link --with \"the mailer has a test double\"",
		Args:              atLeast(1, "the id of a goal"),
		ValidArgsFunction: a.complete(func(s *forge.Summary) bool { return isGoal(s) && s.Waiting != "" }, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.control(cmd.Context(), args, &s, ofGoals(goesOn(&again)))
		},
	}
	cmd.Flags().StringVar(&again.Instructions, "with", "", "`instructions` for the agents")
	cmd.Flags().Float64Var(&again.BudgetUSD, "budget", 0, "what the goal may cost in all from now on, in `USD`")
	output(cmd, &s.format)
	return cmd
}

// ofGoals makes wishes for goals only.
func ofGoals(want wishes) wishes {
	return func(v *forge.View, task forge.TaskID) (wish, error) {
		if v.Goal == nil {
			return wish{}, notGoal(v.Intent.ID)
		}
		return want(v, task)
	}
}

// goesOn makes the wish that a goal goes on, whatever it waits for.
func goesOn(again *forge.Retry) wishes {
	return func(v *forge.View, task forge.TaskID) (wish, error) {
		id := v.Intent.ID
		switch v.Summary.Waiting {
		case forge.WaitingPaused:
			if *again != (forge.Retry{}) {
				return wish{}, fmt.Errorf("%s: is paused, and goes on as it was: leave out --with and --budget", id)
			}
			return resumed(v, task)
		case forge.WaitingApproval, forge.WaitingClarification:
			return wish{}, fmt.Errorf("%s: %s; `%s`", id, render.Doing(&v.Summary), commands(&v.Summary)[0])
		case forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBudget:
		}
		return wish{"resumed", forge.Event{Message: again}}, nil
	}
}
