package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/trusting"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/notify"
)

// Notifications returns where this user wants to be told of what waits for people. It is the
// user's own file, since a repository must not have anything sent elsewhere. Where the
// environment names no folder for it there is none, and the zero configuration tells no place.
func Notifications(a *kit.App) (*notify.Config, error) {
	path := notify.UserFile(a.Getenv)
	if path == "" {
		return &notify.Config{}, nil
	}
	return notify.Load(path)
}

// Follow shows the work of an organisation's runner until no intent, or not the named one,
// can continue without a person. Without a runner it prints that, and waits for one.
// The target stays open, and is the caller's to close.
func Follow(ctx context.Context, a *kit.App, t *target.Target, only forge.IntentID) (*local.Outcome, error) {
	if t.NoRunner {
		a.Say("%s", a.Style(a.Err).Bad("no runner is up, waiting for one: "+target.StartRunner))
	}
	live := a.Live()
	defer live.Close()
	return t.Follow(ctx, only, live)
}

// Work works in this process on everything that can go on in a repository, or shows the
// process that does already, and takes over from that if it ends early. It needs the
// repository's store, so that the caller has closed every target.
//
// Everything that a person may have to be asked, or that can be wrong in the
// environment, comes before the store is taken. It loops because the process that
// it shows may end while work is left: then the store is free, and this one goes
// on. With Only it takes over also when that process ended before its work did.
func Work(ctx context.Context, a *kit.App, repo *local.Repository, base *local.Base, f *Options) (*local.Outcome, error) {
	log, closeLog, err := runLog(a, repo)
	if err != nil {
		return nil, err
	}
	defer closeLog()
	notify, err := Notifications(a)
	if err != nil {
		return nil, err
	}
	guard, err := trusting.Ask(ctx, a, repo, base, f.Made)
	if err != nil {
		return nil, err
	}
	sandboxes, bounds, err := Demand(a)
	if err != nil {
		return nil, err
	}
	live := a.Live()
	defer live.Close()
	for {
		o, err := local.Run(ctx, local.RunConfig{
			Keys: local.Keys(a.Getenv),
			Repo: repo, Base: base, Observer: live, Log: log, Watch: f.watch, Only: f.Only, Notify: notify, Trust: guard, Sandbox: sandboxes, Bounds: bounds,
		})
		var held *natsd.HeldError
		if !errors.As(err, &held) {
			return o, err
		}
		if f.NoJoin {
			return nil, fmt.Errorf("%s; wait for it, or omit --no-join to watch it", holder(held))
		}
		live.Notice(holder(held) + "; showing it")
		o, err = local.Join(ctx, repo, f.Only, live, log)
		ended := errors.Is(err, natsd.ErrNotRunning) || errors.Is(err, local.ErrEnded) && f.Only != ""
		if !ended || ctx.Err() != nil {
			return o, err
		}
		live.Notice("that run has just ended; continuing here")
	}
}

// Demand returns the word of this user on sandboxes, and on what a command may
// take of the machine. No repository has one. It is read from the environment,
// and doctor reads it here, too (ADR-0052). The error names the variable.
func Demand(a *kit.App) (demand.Demand, demand.Bounds, error) {
	d, err := demand.Parse(a.Getenv(demand.Variable))
	if err != nil {
		return "", demand.Bounds{}, fmt.Errorf("%s: %w", demand.Variable, err)
	}
	bounds, err := demand.ReadBounds(a.Getenv)
	return d, bounds, err
}

// holder returns who runs already, and since when.
func holder(h *natsd.HeldError) string {
	return fmt.Sprintf("already running (process %d, since %s)", h.PID, h.Since.Local().Format(time.TimeOnly))
}

// runLog returns the logger of a run, to a file or with --verbose to standard error, and
// what closes it.
// The lines in the file say which attempt or event they are about (package logging).
func runLog(a *kit.App, repo *local.Repository) (*slog.Logger, func(), error) {
	if a.Verbose {
		return a.Log(), func() {}, nil
	}
	file, err := repo.OpenLog()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return slog.New(logging.Handler(slog.NewTextHandler(file, nil))), func() { _ = file.Close() }, nil
}
