// Package schedules is the command schedules: what a project has submitted again and
// again. A person applies the schedules of pfl-forge.yaml, and so asks for their intents.
//
// Schedules are applied by a person and never by a commit, so that there is always a
// name behind their intents (ADR-0106). They are in force in the project's machine:
// this package compares, sends and prints, and when one is due the runner decides.
// Lists go to standard output, hints to standard error. The test is schedules.txtar
// in cmd/pfl-forge/testdata/script; internal/schedules has the arithmetic of times.
package schedules

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const help = `Show the schedules that are in force: when each is due, and what became of the last time.

The list schedules of pfl-forge.yaml takes effect when a person applies it. That person is the
requester of the intents. Of a schedule at most one intent is open at a time; meanwhile times are left out.`

// Command returns the command schedules with those below it.
// Without one of those below it lists the schedules in force.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:     "schedules",
		Short:   "show, apply, pause and run recurring intents",
		Long:    help,
		Example: "  pfl-forge schedules\n  pfl-forge schedules apply --dry-run\n  pfl-forge schedules pause nightly --reason 'until the release'",
		Args:    kit.KnownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), a, format) },
	}
	kit.OutputFlag(cmd, &format)
	cmd.AddCommand(applyCommand(a), runCommand(a), pauseCommand(a), resumeCommand(a))
	return cmd
}

// read returns the schedules in force, which the summary of the project's
// newest decision has. A project in which nothing was decided yet has none, and
// neither has one whose last decision is of a program before there were any.
func read(ctx context.Context, t *target.Target) ([]forge.ScheduleSummary, error) {
	projects, err := t.Projects(ctx)
	if err != nil || len(projects) == 0 || projects[0].Project == nil { // nothing has happened in the project yet
		return nil, err
	}
	return projects[0].Project.Schedules, nil
}

// show prints the schedules in force.
// With -o name it prints their names. That none is in force is no error.
func show(ctx context.Context, a *kit.App, format render.Format) error {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	inForce, err := read(ctx, t)
	if err != nil {
		return err
	}
	list := setup.SchedulesOf(&forge.ProjectSummary{Schedules: inForce})
	names := kit.Names(list, func(s *setup.Schedule) string { return s.Name })
	return a.Print(format, list, names, func() error {
		if len(list) == 0 {
			a.Say("no schedule is in force; write them in pfl-forge.yaml, then: pfl-forge schedules apply")
			return nil
		}
		return table(a, list, time.Now())
	})
}

// table prints schedules, a row for each.
// now is passed in for its zone, in which the times are shown.
func table(a *kit.App, list []setup.Schedule, now time.Time) error {
	columns := render.Columns{Header: []string{"NAME", "CRON", "ZONE", "NEXT", "LAST", "TITLE"}, Shrink: 5}
	for i := range list {
		s := &list[i]
		columns.Add(s.Name, s.Cron, s.Zone, next(s, now), last(s), s.Title)
	}
	return a.Table(&columns)
}

// next says when a schedule is due, by the clock of whoever looks: the zone of the
// schedule stands beside it, and a person compares it with their own day. Programs
// get it in UTC. A paused one has no time, and shows the reason of who paused it.
func next(s *setup.Schedule, now time.Time) string {
	switch {
	case s.Paused:
		return kit.WithReason("paused", s.Reason)
	case s.NextAt == nil:
		return "never"
	}
	return s.NextAt.In(now.Location()).Format("2006-01-02 15:04")
}

// last says what became of the last time: the id of the intent, to look at it
// with pfl-forge show, or why there was none.
func last(s *setup.Schedule) string {
	switch {
	case s.LastAt == nil:
		return ""
	case s.Skipped != "":
		return "left out: " + s.Skipped
	}
	return string(s.LastIntent)
}

// names completes the names of schedules in force.
// Only the first argument is completed.
func names(a *kit.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		t, err := target.Reader(cmd.Context(), a)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer t.Close()
		list, err := read(cmd.Context(), t)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := range list {
			out = append(out, cobra.CompletionWithDesc(list[i].Name, term.Short(list[i].Title, 60)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// pauseCommand returns the command that stops schedules.
// A paused one keeps its place, and stays paused if it is applied again unchanged.
func pauseCommand(a *kit.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "pause <name>...", Short: "stop schedules for a while",
		Long:    "Stop schedules for a while. Intents that were already submitted continue.",
		Example: "  pfl-forge schedules pause nightly --reason 'until the release'",
		Args:    kit.AtLeast(1, "the name"), ValidArgsFunction: names(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pause(cmd.Context(), a, args, "paused", forge.PauseSchedule{Paused: true, Reason: reason})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, shown in the list")
	return cmd
}

// resumeCommand returns the command that lets schedules go on.
func resumeCommand(a *kit.App) *cobra.Command {
	return &cobra.Command{
		Use: "resume <name>...", Short: "resume schedules",
		Long:    "Resume schedules. Times that passed meanwhile are not made up for.",
		Example: "  pfl-forge schedules resume nightly",
		Args:    kit.AtLeast(1, "the name"), ValidArgsFunction: names(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pause(cmd.Context(), a, args, "resumed", forge.PauseSchedule{})
		},
	}
}

// pause sends a wish about each schedule, and prints what became of it. One that
// is refused, as for a name that there is not, does not keep the others back.
func pause(ctx context.Context, a *kit.App, args []string, done string, m forge.PauseSchedule) error {
	if i := slices.Index(args, ""); i >= 0 {
		return kit.Usage(kit.Missing("a name"))
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a}
		for _, name := range args {
			one := m
			one.Name = strings.TrimSpace(name)
			b.Send(ctx, t, term.Line(name), done, forge.Event{To: t.Key("").ProjectKey(), Message: &one})
		}
		return b.End(t)
	})
}
