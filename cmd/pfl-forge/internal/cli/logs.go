package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/logs"
)

const logsHelp = `Show what happened to an intent, a task, or all of them: what was decided, and what
agents and commands did in each attempt. With -f go on with what happens, also in
attempts that begin later, until the intent is settled, the run ends, or Ctrl-C.

With -o ndjson each line is an object with at, project, intent, task, step, attempt,
claim, replica, kind, agent, text and usage, as far as it has them. kind is decided
(from the journal), started, text, thinking, tool, output (of a command), usage (the
sum of the call so far), limit (it waits for the model) or ended (text: the outcome).`

// logsFlags are those of logs.
type logsFlags struct {
	follow  bool
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

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs [<id>]",
		Short: "show what happened, and with -f what happens",
		Long:  logsHelp,
		Example: "  pfl-forge logs reset-link\n  pfl-forge logs -f reset-link-001\n" +
			"  pfl-forge logs --since 10m --step review\n  pfl-forge logs -f -o ndjson",
		Args:              between(0, 1, ""),
		ValidArgsFunction: a.completeTasks(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), args, &f) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on, until the intent is settled, the run ends, or Ctrl-C")
	flags.StringVar(&f.since, "since", "", "only what is newer: a `time` such as 10m, 2h or 2026-03-01T12:00:00Z")
	flags.StringVar(&f.step, "step", "", "only of this `step`: "+strings.Join(stepNames(), ", "))
	flags.IntVar(&f.attempt, "attempt", 0, "only of the attempts with this `number`")
	flags.StringVarP(&f.output, "output", "o", formatLines, "table, ndjson, json, yaml")
	complete := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	_ = cmd.RegisterFlagCompletionFunc("output", complete(formatLines, formatNDJSON, formatJSON, formatYAML))
	_ = cmd.RegisterFlagCompletionFunc("step", complete(stepNames()...))
	return cmd
}

func stepNames() []string {
	var names []string
	for _, s := range forge.Steps() {
		names = append(names, string(s))
	}
	return names
}

// query returns what the flags ask for.
func (f *logsFlags) query(now time.Time) (logs.Query, error) {
	var q logs.Query
	var err error
	if q.Since, err = parseSince(f.since, now); err != nil {
		return q, usageError{fmt.Errorf("--since: %w", err)}
	}
	if f.step != "" {
		if q.Step, err = forge.ParseStep(f.step); err != nil {
			return q, usageError{fmt.Errorf("--step: %w; there are %s", err, strings.Join(stepNames(), ", "))}
		}
	}
	if q.Attempt = f.attempt; f.attempt < 0 {
		return q, usageError{errors.New("--attempt: attempts are counted from 1")}
	}
	formats := []string{formatLines, formatNDJSON, formatJSON, formatYAML}
	switch {
	case !slices.Contains(formats, f.output):
		return q, usageError{fmt.Errorf("--output: can be %s", strings.Join(formats, ", "))}
	case f.follow && (f.output == formatJSON || f.output == formatYAML):
		return q, usageError{fmt.Errorf("-o %s has an end, and -f none: use -o ndjson", f.output)}
	}
	return q, nil
}

// parseSince reads a point in time, or how long ago it is.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no duration such as 10m, and no time such as 2026-03-01T12:00:00Z or 2026-03-01", s)
}

func (a *app) logs(ctx context.Context, args []string, f *logsFlags) error {
	q, err := f.query(time.Now())
	if err != nil {
		return err
	}
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer func() { t.close() }()
	if q.Project = t.project; len(args) > 0 {
		v, task, err := t.find(ctx, args[0])
		if err != nil {
			return err
		}
		q.Intent = v.Intent.ID
		if task != nil {
			q.Task = task.ID
		}
	}
	if t.bus == nil {
		a.say("no intents yet")
		return nil
	}
	out := a.logOutput(f.output)
	r := logs.New(q, out.show)
	if err := a.readLogs(ctx, &t, r, f.follow, q.Intent != ""); err != nil {
		return err
	}
	a.sayIncomplete(r)
	return out.end()
}

func (a *app) sayIncomplete(r *logs.Reader) {
	if err := r.Incomplete(); err != nil {
		a.say("%s", safe(err.Error()))
	}
}

// readLogs reads from a target, and when the run that it talks to has ended, what that
// left.
func (a *app) readLogs(ctx context.Context, t **target, r *logs.Reader, follow, one bool) error {
	if !follow || (*t).owner {
		if err := r.Read(ctx, (*t).bus, false); err != nil || !follow || one && r.Settled() {
			return err
		}
		return errors.New("nothing goes on here, so there is nothing to follow; leave out -f, or start `pfl-forge run` in another terminal")
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	gone := (*t).endWithRun(following, stop)
	if err := r.Read(following, (*t).bus, true); err != nil {
		return err
	}
	stop()
	if !<-gone || ctx.Err() != nil {
		return nil
	}
	(*t).close()
	left, err := a.reader(ctx)
	if err != nil {
		return err
	}
	*t = left
	return r.Read(ctx, left.bus, false)
}

// endWithRun calls stop when the run has ended that is followed. What it returns says
// whether that was so, once ctx has ended.
func (t *target) endWithRun(ctx context.Context, stop func()) <-chan bool {
	ended := make(chan bool, 1)
	if t.session == nil {
		ended <- false
		return ended
	}
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- false
				return
			case <-tick.C:
				if t.session.Gone(ctx) {
					ended <- true
					stop()
					return
				}
			}
		}
	}()
	return ended
}

// timeline prints what was decided on an intent.
func (a *app) timeline(ctx context.Context, t *target, id forge.IntentID) error {
	records, _, err := t.bus.Load(ctx, t.key(id))
	if err != nil {
		return err
	}
	a.heading("history")
	out := a.logOutput(formatLines)
	for _, e := range logs.Decisions(t.key(id), records) {
		out.show(e)
	}
	return nil
}

// completeTasks offers the ids of intents, and of their tasks; most bounds how many
// arguments there are, 0 means any number.
func (a *app) completeTasks(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t, err := a.reader(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		defer t.close()
		all, err := t.summaries(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for i := range all {
			ids = append(ids, cobra.CompletionWithDesc(string(all[i].Key.Intent), safe(all[i].Title)))
			for n := range all[i].TaskCount {
				ids = append(ids, string(forge.NewTaskID(all[i].Key.Intent, n+1)))
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
