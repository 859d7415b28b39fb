// Package history is the command that lists the finished runs of all intents,
// or shows one as a timeline of its attempts and of the adjustments of its
// flow.
//
// Both are made from the journals alone; the list reads all of a project once.
// A run is history only when it has ended: show and status are about the
// present one.
//
// command.go has the list, run.go one run, document.go the types that programs read. Both go to
// standard output. The test of the command is history.txtar in cmd/pfl-forge/testdata/script.
package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/complete"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

const historyHelp = `List the finished runs of all intents, newest first. With the id of an intent, show its
last run, or the one given by --run, as a timeline: every attempt with its duration, agent,
model, session and cost, and every adjustment of the flow with the rule behind it.

Each retry of an intent is another run.`

// flags are the flags of history.
// All but run and format are about the list, and are refused with an id.
type flags struct {
	intent, kind, outcome, agent, since string
	limit, run                          int
	format                              render.Format
}

// Command returns the command history.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "history [<intent>]",
		Short: "list finished runs, or show one as a timeline",
		Long:  historyHelp,
		Example: "  pfl-forge history\n  pfl-forge history --outcome failed --since 168h\n" +
			"  pfl-forge history reset-link\n  pfl-forge history reset-link --run 1 -o yaml",
		Args:              kit.Between(0, 1, ""),
		ValidArgsFunction: complete.Intents(a, complete.AnyIntent, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return history(cmd.Context(), a, &f)
			}
			for _, name := range []string{"intent", "type", "outcome", "agent", "since", "limit"} {
				if cmd.Flags().Changed(name) {
					return kit.Usage(fmt.Errorf("--%s is for the list; omit the id", name))
				}
			}
			return historyOf(cmd.Context(), a, args[0], &f)
		},
	}
	outcomes := []string{string(forge.OutcomeSuccess), string(forge.OutcomeFailed), string(forge.OutcomeEscalated)}
	set := cmd.Flags()
	set.StringVar(&f.intent, "intent", "", "only runs of the intent with this `id`")
	set.StringVar(&f.kind, "type", "", "only runs of intents of a `type` such as fix")
	set.StringVar(&f.outcome, "outcome", "", "only runs with this outcome: "+strings.Join(outcomes, ", "))
	set.StringVar(&f.agent, "agent", "", "only runs in which the agent with this `name` worked")
	set.StringVar(&f.since, "since", "", "only runs that ended after a `time` such as 24h or 2026-03-01")
	set.IntVar(&f.limit, "limit", 50, "at most this many runs, 0 for all")
	set.IntVar(&f.run, "run", 0, "the `number` of the run to show; default: the last one")
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions(outcomes, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("intent", complete.Intents(a, complete.AnyIntent, 0))
	kit.OutputFlag(cmd, &f.format)
	return cmd
}

// wants returns the function that reports whether a finished run is asked for. Errors are
// mistakes in the command line, and name the flag. A run has to fit all filters that are given.
func (f *flags) wants(now time.Time) (func(*forge.History) bool, error) {
	since, err := kit.ParseSince(f.since, now)
	if err != nil {
		return nil, kit.Usage(fmt.Errorf("--since: %w", err))
	}
	switch forge.Outcome(f.outcome) {
	case "", forge.OutcomeSuccess, forge.OutcomeFailed, forge.OutcomeEscalated:
	default:
		return nil, kit.Usage(fmt.Errorf("--outcome: %q can be success, failed or escalated", f.outcome))
	}
	switch {
	case f.run != 0:
		return nil, kit.Usage(errors.New("--run needs the id of an intent"))
	case f.limit < 0:
		return nil, kit.Usage(errors.New("--limit: must be 0 or more"))
	}
	return func(h *forge.History) bool {
		worked := func(s forge.StepRecord) bool { return s.Agent == f.agent }
		return (f.intent == "" || string(h.IntentID) == f.intent) && (f.kind == "" || h.IntentType == f.kind) &&
			(f.outcome == "" || string(h.Outcome) == f.outcome) && !h.CreatedAt.Before(since) &&
			(f.agent == "" || slices.ContainsFunc(h.StepResults, worked))
	}, nil
}

// none returns the line for an empty list, with the next command.
// With filters that is the call without them.
func (f *flags) none() string {
	if f.intent+f.kind+f.outcome+f.agent+f.since != "" {
		return "no finished runs match; without filters: pfl-forge history"
	}
	return "no run has ended yet; what is under way: pfl-forge status"
}

// history prints the list of finished runs. Over NATS all runs are read and then cut, by HTTP
// no more than are needed. -o name has an intent and a run a line, with a tab between them.
func history(ctx context.Context, a *kit.App, f *flags) error {
	wants, err := f.wants(time.Now())
	if err != nil {
		return err
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	found, err := t.Finished(ctx, wants, f.limit)
	if err != nil {
		return err
	}
	sortRuns(found)
	more := 0
	if f.limit > 0 && len(found) > f.limit {
		more = len(found) - f.limit
		found = found[:f.limit]
	}
	list := make([]pastRun, len(found))
	for i := range found {
		list[i] = pastRunOf(&found[i])
	}
	return a.Print(f.format, list, kit.Names(list, nameOf), func() error {
		if len(list) == 0 {
			a.Say("%s", f.none())
			return nil
		}
		return printTable(a, list, more, f.format == render.Wide)
	})
}

// printTable prints finished runs, each in a row, and how many more there are.
// Times are of this machine's zone; programs get them as they are journaled.
func printTable(a *kit.App, list []pastRun, more int, wide bool) error {
	columns := render.Columns{Header: []string{"ENDED", "INTENT", "RUN", "OUTCOME", "TIME", "STEPS", "ADJUSTED", "COST", "TITLE"}, Shrink: 8}
	if wide {
		columns.Header = append(columns.Header, "TYPE", "RISK", "SOURCE", "AGENTS", "TOKENS", "CACHED", "REASON")
	}
	for i := range list {
		r := &list[i]
		row := []string{
			r.EndedAt.Local().Format(time.DateTime), string(r.Intent), fmt.Sprint(r.Run), string(r.Outcome), tookSeconds(r.Seconds),
			fmt.Sprint(r.Steps), fmt.Sprint(r.Adjustments), render.Cost(r.CostUSD), r.Title,
		}
		if wide {
			row = append(row, r.Type, string(r.Risk), string(r.Source), strings.Join(r.Agents, ","), render.Tokens(r.Tokens), render.Tokens(r.CachedTokens), r.Reason)
		}
		columns.Add(row...)
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	if more > 0 {
		a.Say("and %d earlier; --limit 0 shows all", more)
	}
	return nil
}

// tookSeconds returns a duration in seconds as people read it.
func tookSeconds(s float64) string { return render.Took(time.Duration(s * float64(time.Second))) }
