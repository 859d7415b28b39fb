// Package logs is the command logs: it prints what happened to intents, and
// what happens, as lines or as data.
//
// Package entries reads it and puts it in order; here are the flags, the
// formats, and how a run that ends is followed. PrintIntent and Timeline print
// the same lines for the inbox, the live view and show.
package logs

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
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs/entries"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
)

const logsHelp = `Show what happened to an intent, a task, or all of them: the decisions, and what agents
and commands did in each attempt. With -f, keep following, including attempts that start
later, until the intent ends or waits for you, the run ends, or Ctrl-C.

With -o ndjson each line is an object with at, project, intent, task, step, attempt,
claim, replica, kind, agent, text and usage, as far as it has them. kind is decided
(from the journal), started, text, thinking, tool, output (of a command), usage (the
sum of the call so far), limit (it waits for the model) or ended (text: the outcome).`

// flags are the flags of logs, as they were typed; query checks them.
type flags struct {
	follow bool
	// since is a time or how long ago it was; empty for everything that is kept. Step and attempt
	// are empty and 0 for all.
	since   string
	step    string
	attempt int
	output  string
}

// The formats of logs.
const (
	formatLines  = "table"
	formatNDJSON = "ndjson"
	formatJSON   = "json"
	formatYAML   = "yaml"
)

// Command returns the command logs. -o has formats of its own: ndjson is the one that can be
// followed, and its lines are those of package transcript.
func Command(a *kit.App) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "logs [<id>]",
		Short: "show what happened, or follow it with -f",
		Long:  logsHelp,
		Example: "  pfl-forge logs reset-link\n  pfl-forge logs -f reset-link-001\n" +
			"  pfl-forge logs --since 10m --step review\n  pfl-forge logs -f -o ndjson",
		Args:              kit.Between(0, 1, ""),
		ValidArgsFunction: complete.IntentsAndTasks(a, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return logs(cmd.Context(), a, args, &f) },
	}
	set := cmd.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "keep following, until the intent ends or waits for you, the run ends, or Ctrl-C")
	set.StringVar(&f.since, "since", "", "only what is newer than a `time` such as 10m, 2h or 2026-03-01T12:00:00Z")
	set.StringVar(&f.step, "step", "", "only of this `step`: "+strings.Join(stepNames(), ", "))
	set.IntVar(&f.attempt, "attempt", 0, "only of the attempts with this `number`")
	set.StringVarP(&f.output, "output", "o", formatLines, "table, ndjson, json, yaml")
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	_ = cmd.RegisterFlagCompletionFunc("output", fixed(formatLines, formatNDJSON, formatJSON, formatYAML))
	_ = cmd.RegisterFlagCompletionFunc("step", fixed(stepNames()...))
	return cmd
}

// stepNames returns the names of all steps, as --step takes them.
func stepNames() []string {
	var names []string
	for _, s := range forge.Steps() {
		names = append(names, string(s))
	}
	return names
}

// query returns the query that the flags describe, without a project and an intent. All errors are
// mistakes in the command line, and are found before anything is read. Formats that are one
// document cannot be followed: they would never be printed.
func (f *flags) query(now time.Time) (entries.Query, error) {
	var q entries.Query
	var err error
	if q.Since, err = kit.ParseSince(f.since, now); err != nil {
		return q, kit.Usage(fmt.Errorf("--since: %w", err))
	}
	if f.step != "" {
		if q.Step, err = forge.ParseStep(f.step); err != nil {
			return q, kit.Usage(fmt.Errorf("--step: %w; there are %s", err, strings.Join(stepNames(), ", ")))
		}
	}
	if q.Attempt = f.attempt; f.attempt < 0 {
		return q, kit.Usage(errors.New("--attempt: attempts are counted from 1"))
	}
	formats := []string{formatLines, formatNDJSON, formatJSON, formatYAML}
	switch {
	case !slices.Contains(formats, f.output):
		return q, kit.Usage(fmt.Errorf("--output: can be %s", strings.Join(formats, ", ")))
	case f.follow && (f.output == formatJSON || f.output == formatYAML):
		return q, kit.Usage(fmt.Errorf("-o %s cannot be used with -f: use -o ndjson", f.output))
	}
	return q, nil
}

// logs prints past entries, and with --follow also those that come. Past entries
// come from journals and transcripts, in the order of their times, so that what
// was decided stands between the lines of the agents that it was about.
//
// By HTTP only one intent's log can be read, and not be followed (see entries.ReadHTTP).
// A store in which nothing was submitted yet has no log, which is no error.
func logs(ctx context.Context, a *kit.App, args []string, f *flags) error {
	q, err := f.query(time.Now())
	if err != nil {
		return err
	}
	t, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	defer func() { t.Close() }()
	if q.Project = t.Project; len(args) > 0 {
		v, task, err := t.Find(ctx, args[0])
		if err != nil {
			return err
		}
		q.Intent = v.Intent.ID
		if task != nil {
			q.Task = task.ID
		}
	}
	if t.Empty() {
		a.Say("no intents yet")
		return nil
	}
	out := newOutput(a, f.output)
	if t.ByHTTP() {
		switch {
		case f.follow:
			return kit.Usage(errors.New("-f does not work by HTTP; omit it, or follow the decisions with pfl-forge status --watch"))
		case q.Intent == "":
			return kit.Usage(errors.New("by HTTP there are the logs of one intent at a time: give its id"))
		}
		if err := entries.ReadHTTP(ctx, t, &q, out.show); err != nil {
			return err
		}
		return out.end()
	}
	r := entries.New(q, out.show)
	if err := readLogs(ctx, a, &t, r, f.follow, q.Intent != ""); err != nil {
		return err
	}
	sayIncomplete(a, r)
	return out.end()
}

// readLogs reads the entries that the reader asks for from a target. If it follows a run that
// ends, it opens the target anew, which then is *t, and reads the rest. One says that the reader
// asks for one intent.
//
// Following where nothing runs is an error, unless the one intent is settled, so that a script can
// ask with -f whatever the state is. The caller closes *t, whichever target that is then.
func readLogs(ctx context.Context, a *kit.App, t **target.Target, r *entries.Reader, follow, one bool) error {
	if !follow || (*t).Owner {
		if err := r.Read(ctx, (*t).Bus, false); err != nil || !follow || one && r.Idle() {
			return err
		}
		return errors.New("nothing is running here, so there is nothing to follow; omit -f, or start `pfl-forge run` in another terminal")
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	gone := endWithRun(following, (*t), stop)
	if err := r.Read(following, (*t).Bus, true); err != nil {
		return err
	}
	stop()
	if !<-gone || ctx.Err() != nil {
		return nil
	}
	(*t).Close()
	left, err := target.Reader(ctx, a)
	if err != nil {
		return err
	}
	*t = left
	return r.Read(ctx, left.Bus, false)
}

// endWithRun calls stop once the run has ended that is followed. The channel it returns gets
// one value: true after that, or false if the context ended first. An organisation's target
// has no session, and its server does not end with a run: the value is false at once.
func endWithRun(ctx context.Context, t *target.Target, stop func()) <-chan bool {
	ended := make(chan bool, 1)
	if t.Session == nil {
		ended <- false
		return ended
	}
	go func() {
		// The end of a run of this repository is not announced: its server just stops.
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- false
				return
			case <-tick.C:
				if t.Session.Gone(ctx) {
					ended <- true
					stop()
					return
				}
			}
		}
	}()
	return ended
}
