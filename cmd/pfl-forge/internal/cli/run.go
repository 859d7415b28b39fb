package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/natsd"
)

type runFlags struct {
	dryRun, watch, noJoin bool
	format                render.Format
	only                  forge.IntentID // the intent whose end is waited for; empty: everything's
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "work on everything that can go on without you",
		Long: `Import the drafts, work on everything that can go on without a person, and stop.

Ctrl-C ends the agents and keeps their work; the next run goes on. A second Ctrl-C
ends at once. If a run goes on here already, this one shows it; with --server it
shows what an organisation's pfl-forge works on.

Exit codes: 0 all done, 1 usage or internal error, 2 something is blocked or ended
with an error, 3 nothing failed but something waits for a person (or a file of
theirs was refused), 130 interrupted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be imported and worked on, and change nothing")
	flags.BoolVar(&f.watch, "watch", false, "go on when nothing is left to do, until Ctrl-C")
	flags.BoolVar(&f.noJoin, "no-join", false, "fail if a run goes on here already")
	output(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}

func (a *app) run(ctx context.Context, f *runFlags) error {
	if a.remote() {
		return a.runRemote(ctx, f)
	}
	repo, err := local.OpenRepository(ctx, a.dir)
	if err != nil {
		return err
	}
	base, err := repo.Base(ctx)
	if err != nil {
		return err
	}
	a.noticeConfig(repo, base)
	if f.dryRun {
		return a.dryRun(ctx, repo, base, f.format)
	}
	o, err := a.runLocal(ctx, repo, base, f)
	if o != nil && err == nil {
		return a.conclude(o, f.format)
	}
	return err
}

// runLocal works here, or shows the run that does.
func (a *app) runLocal(ctx context.Context, repo *local.Repository, base *local.Base, f *runFlags) (*local.Outcome, error) {
	log, closeLog, err := a.runLog(repo)
	if err != nil {
		return nil, err
	}
	defer closeLog()
	notify, err := a.notifications()
	if err != nil {
		return nil, err
	}
	live := a.live()
	defer live.Close()
	for {
		o, err := local.Run(ctx, local.RunConfig{Repo: repo, Base: base, Observer: live, Log: log, Watch: f.watch, Only: f.only, Notify: notify})
		var held *natsd.HeldError
		if !errors.As(err, &held) {
			return o, err
		}
		if f.noJoin {
			return nil, fmt.Errorf("%s; wait for it, or leave out --no-join to watch it", holder(held))
		}
		live.Notice(holder(held) + "; showing it")
		o, err = local.Join(ctx, repo, f.only, live, log)
		ended := errors.Is(err, natsd.ErrNotRunning) || errors.Is(err, local.ErrEnded) && f.only != ""
		if !ended || ctx.Err() != nil {
			return o, err
		}
		live.Notice("that run has just ended; going on")
	}
}

func holder(h *natsd.HeldError) string {
	return fmt.Sprintf("a run goes on here already, in process %d since %s", h.PID, h.Since.Local().Format(time.TimeOnly))
}

func (a *app) runRemote(ctx context.Context, f *runFlags) error {
	if f.dryRun || f.watch || f.noJoin {
		return usageError{errors.New("with --server a run is only shown: leave out --dry-run, --watch and --no-join")}
	}
	t, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	live := a.live()
	o, err := local.Follow(ctx, t.bus, t.project, "", live, a.log())
	live.Close()
	if err != nil {
		return err
	}
	return a.conclude(o, f.format)
}

// noticeConfig says so when the configuration in the folder is not the one that
// counts.
func (a *app) noticeConfig(repo *local.Repository, base *local.Base) {
	mine, err := os.ReadFile(filepath.Join(repo.Root, config.FileName))
	switch {
	case err != nil && base.Stored == nil, bytes.Equal(mine, base.Stored):
	case base.Stored == nil:
		a.say("%s is not committed on %s: it has no effect, the defaults hold", config.FileName, base.Branch)
	default:
		a.say("%s differs from the one committed on %s, which counts", config.FileName, base.Branch)
	}
}

func (a *app) sayInterrupted(o *local.Outcome) {
	if o.Joined {
		a.say("no longer shown; the run goes on in the other process")
	} else {
		a.say("interrupted; work is kept, the next run goes on")
	}
}

// conclude prints how things stand at the end, and returns the exit code.
func (a *app) conclude(o *local.Outcome, format render.Format) error {
	if o.Interrupted {
		a.sayInterrupted(o)
		return outcome(o)
	}
	if format.Data() {
		doc := statusDoc{Intents: items(o.Intents), Counts: render.CountIntents(o.Intents)}
		if len(o.Intents) > 0 {
			doc.Project = o.Intents[0].Key.Project
		}
		if err := format.Write(a.out, doc); err != nil {
			return err
		}
		return outcome(o)
	}
	var open []forge.Summary
	for i := range o.Intents {
		if o.Intents[i].Waiting != "" {
			open = append(open, o.Intents[i])
		}
	}
	if len(open) > 0 {
		if err := a.table(open, nil, false); err != nil {
			return err
		}
	}
	fmt.Fprintln(a.out, render.Tally(o.Intents))
	if len(open) > 0 {
		a.say("next: pfl-forge inbox")
	}
	return outcome(o)
}
