// Package run is the command that works on everything that can go on without a person. In
// a repository it does the work in this process, or shows the process that does; with
// --server it shows what an organisation's runner does.
//
// Work and Follow are open to other packages that need a run of their own: goal run waits
// for one intent, and the demo runs in a repository that it has made.
//
// command.go chooses between here and elsewhere, work.go does it, dryrun.go is --dry-run,
// outcome.go makes the exit code. The work itself is package local's: this package asks
// the person what has to be asked before (trust, ADR-0045), shows what happens on
// standard error, and prints how things stand to standard output. The tests are the
// scripts run.txtar, second.txtar and outcomes.txtar in cmd/pfl-forge/testdata/script.
package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/schedules"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/config"
)

// Options is how to run. The zero value is the command without flags.
type Options struct {
	// Only ends the run when this intent can go on no more; empty means when
	// nothing can.
	Only forge.IntentID
	// NoJoin fails if a run is already active here, instead of showing it.
	NoJoin bool
	// Made says that this process made the repository, so that no person has to be asked
	// whether what it brings may run.
	Made bool

	// watch goes on when nothing is left to do.
	watch  bool
	dryRun bool
	format render.Format
}

// Command returns the command run.
// Exit codes are a contract with scripts: they are in the help and in outcome.go.
func Command(a *kit.App) *cobra.Command {
	var f Options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "work on everything that does not need you",
		Long: `Import the drafts, work on everything that does not need a person, and stop.

Ctrl-C stops the agents and keeps their work; the next run continues. A second Ctrl-C
stops at once. If a run is already active here, this one shows it; with --server it
shows what an organisation's pfl-forge works on.

Exit codes: 0 all done, 1 usage or internal error, 2 something is blocked or failed, 3
nothing failed but something waits for a person (or one of their files was refused),
130 interrupted.`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, &f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would be imported and worked on, and change nothing")
	flags.BoolVar(&f.watch, "watch", false, "keep running and wait for new work (stop with Ctrl-C)")
	flags.BoolVar(&f.NoJoin, "no-join", false, "fail if a run is already active here")
	kit.OutputFlag(cmd, &f.format)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "watch")
	return cmd
}

// run works, here or elsewhere, until nothing can go on, and prints how things
// stand then. The configuration of the base branch is read once, before the
// store is opened; a mistake in it ends the command.
func run(ctx context.Context, a *kit.App, f *Options) error {
	if a.Remote() {
		return runRemote(ctx, a, f)
	}
	repo, err := local.OpenRepository(ctx, a.Dir)
	if err != nil {
		return err
	}
	base, err := repo.Base(ctx)
	if err != nil {
		return err
	}
	NoticeConfig(a, repo, base)
	schedules.Notice(ctx, a, base.Config)
	if f.dryRun {
		return dryRun(ctx, a, repo, base, f.format)
	}
	o, err := Work(ctx, a, repo, base, f)
	if o != nil && err == nil {
		return conclude(a, o, f.format)
	}
	return err
}

// runRemote shows what an organisation's pfl-forge works on. It starts and stops
// nothing: the flags that would are refused. Its exit code is that of a run here.
func runRemote(ctx context.Context, a *kit.App, f *Options) error {
	if f.dryRun || f.watch || f.NoJoin {
		return kit.Usage(errors.New("with --server a run is only shown: omit --dry-run, --watch and --no-join"))
	}
	t, err := target.Connect(ctx, a)
	if err != nil {
		return err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return err
	}
	if err := t.CheckProject(ctx, len(all) > 0); err != nil {
		return err
	}
	o, err := Follow(ctx, a, t, f.Only)
	if err != nil {
		return err
	}
	return conclude(a, o, f.format)
}

// NoticeConfig says so when the configuration in the folder is not the one committed
// on the base branch, which is the one that counts. A folder and a branch that have
// both none differ in nothing. It prints one line to standard error at most.
func NoticeConfig(a *kit.App, repo *local.Repository, base *local.Base) {
	mine, err := os.ReadFile(filepath.Join(repo.Root, config.FileName))
	switch {
	case err != nil && base.Stored == nil, bytes.Equal(mine, base.Stored):
	case base.Stored == nil:
		a.Say("%s is not committed on %s: it has no effect, the defaults apply", config.FileName, base.Branch)
	default:
		a.Say("%s differs from the committed one on %s; the committed one is used", config.FileName, base.Branch)
	}
}
