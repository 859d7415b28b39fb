package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// logLine is one line of a log, as programs read it.
type logLine struct {
	At      time.Time      `json:"at"`
	Intent  forge.IntentID `json:"intent"`
	Subject string         `json:"subject"` // the task, or the intent
	Step    forge.Step     `json:"step,omitempty"`
	Attempt int            `json:"attempt,omitempty"`
	Kind    string         `json:"kind"` // decided, or the kind of progress
	Agent   string         `json:"agent,omitempty"`
	Text    string         `json:"text,omitempty"`
}

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	var format render.Format
	cmd := &cobra.Command{
		Use:               "logs [<id>]",
		Short:             "show what happened, and with -f what happens",
		Long:              "Show what happened to an intent, a task, or all of them. With -f go on with what agents do and what is decided.",
		Example:           "  pfl-forge logs reset-link\n  pfl-forge logs -f\n  pfl-forge logs -f -o json",
		Args:              between(0, 1, ""),
		ValidArgsFunction: a.complete(anyIntent, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format == render.YAML {
				return usageError{errors.New("logs are printed as table or json")}
			}
			return a.logs(cmd.Context(), args, follow, format)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on, until the run ends or Ctrl-C")
	output(cmd, &format)
	return cmd
}

// logger prints log lines. It is safe for concurrent use.
type logger struct {
	app    *app
	format render.Format
	intent forge.IntentID // empty: of all
	task   forge.TaskID   // empty: of all of the intent

	mu    sync.Mutex
	state map[forge.Key]machine.Machine
}

func (a *app) logs(ctx context.Context, args []string, follow bool, format render.Format) error {
	t, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	l := &logger{app: a, format: format, state: map[forge.Key]machine.Machine{}}
	if len(args) > 0 {
		v, task, err := t.find(ctx, args[0])
		if err != nil {
			return err
		}
		l.intent = v.Intent.ID
		if task != nil {
			l.task = task.ID
		}
	}
	if t.bus == nil {
		a.say("no intents yet")
		return nil
	}
	if follow && t.owner {
		return errors.New("nothing goes on here, so there is nothing to follow; leave out -f, or start `pfl-forge run` in another terminal")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if follow {
		if err := t.bus.FollowProgress(ctx, t.project, l.progress); err != nil {
			return err
		}
		go t.endWithRun(ctx, stop)
	}
	return t.bus.Follow(ctx, t.project, 0, bus.Follower{
		Record: func(key forge.Key, _ uint64, rec forge.Record) error {
			l.record(key, &rec)
			return nil
		},
		CaughtUp: func() error {
			if !follow {
				stop()
			}
			return nil
		},
	})
}

// endWithRun stops what follows a run when that has ended.
func (t *target) endWithRun(ctx context.Context, stop func()) {
	if t.session == nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if t.session.Gone(ctx) {
				stop()
				return
			}
		}
	}
}

func (l *logger) record(key forge.Key, rec *forge.Record) {
	if key.IsLane() || l.intent != "" && key.Intent != l.intent {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.state[key]
	var before forge.Summary
	if m == nil {
		m = machine.New(key)
		l.state[key] = m
	} else {
		before = m.Summary()
	}
	for _, ev := range rec.Events {
		m.Step(ev)
	}
	after := m.Summary()
	for _, line := range render.Lines(&before, &after, rec) {
		if l.task != "" && line.Who != string(l.task) {
			continue
		}
		l.print(logLine{At: line.At, Intent: key.Intent, Subject: line.Who, Kind: "decided", Text: line.Text})
	}
}

func (l *logger) progress(p forge.Progress) {
	if l.intent != "" && p.To.Intent != l.intent || l.task != "" && p.Attempt.Task != l.task {
		return
	}
	text := p.Text
	switch p.Kind {
	case forge.ProgressStarted, forge.ProgressEnded:
		text = string(p.Kind)
	case forge.ProgressUsage:
		text = render.Consumed(&p.Usage)
	case forge.ProgressText, forge.ProgressTool, forge.ProgressOutput:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print(logLine{
		At: p.At, Intent: p.To.Intent, Subject: render.Subject(&p), Step: p.Attempt.Step, Attempt: p.Attempt.Number,
		Kind: string(p.Kind), Agent: p.Agent, Text: text,
	})
}

func (l *logger) print(line logLine) {
	if l.format == render.JSON {
		text, err := json.Marshal(line)
		if err == nil {
			fmt.Fprintf(l.app.out, "%s\n", text)
		}
		return
	}
	text := term.Line(line.Text)
	if line.Step != "" {
		text = render.StepName(forge.Attempt{Step: line.Step, Number: line.Attempt}) + " | " + text
	}
	style := l.app.style(l.app.out)
	fmt.Fprintf(l.app.out, "%s  %-24s  %s\n", style.Faint(line.At.Local().Format(time.DateTime)), line.Subject, text)
}

// timeline prints what happened to an intent.
func (a *app) timeline(ctx context.Context, t *target, id forge.IntentID) error {
	records, _, err := t.bus.Load(ctx, t.key(id))
	if err != nil {
		return err
	}
	a.heading("history")
	l := &logger{app: a, format: render.Table, state: map[forge.Key]machine.Machine{}}
	for i := range records {
		l.record(t.key(id), &records[i])
	}
	return nil
}
