package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/notify"
)

// notifications returns whom the user wants to be told of what needs people.
func notifications(a *kit.App) (*notify.Config, error) {
	path := notify.UserFile(a.Getenv)
	if path == "" {
		return &notify.Config{}, nil
	}
	return notify.Load(path)
}

// Work works here, or shows the run that does.
func Work(ctx context.Context, a *kit.App, repo *local.Repository, base *local.Base, f *Options) (*local.Outcome, error) {
	log, closeLog, err := runLog(a, repo)
	if err != nil {
		return nil, err
	}
	defer closeLog()
	notify, err := notifications(a)
	if err != nil {
		return nil, err
	}
	live := a.Live()
	defer live.Close()
	for {
		o, err := local.Run(ctx, local.RunConfig{Repo: repo, Base: base, Observer: live, Log: log, Watch: f.watch, Only: f.Only, Notify: notify})
		var held *natsd.HeldError
		if !errors.As(err, &held) {
			return o, err
		}
		if f.NoJoin {
			return nil, fmt.Errorf("%s; wait for it, or leave out --no-join to watch it", holder(held))
		}
		live.Notice(holder(held) + "; showing it")
		o, err = local.Join(ctx, repo, f.Only, live, log)
		ended := errors.Is(err, natsd.ErrNotRunning) || errors.Is(err, local.ErrEnded) && f.Only != ""
		if !ended || ctx.Err() != nil {
			return o, err
		}
		live.Notice("that run has just ended; going on")
	}
}

func holder(h *natsd.HeldError) string {
	return fmt.Sprintf("a run goes on here already, in process %d since %s", h.PID, h.Since.Local().Format(time.TimeOnly))
}

// runLog returns the logger of a run: a file, or with --verbose standard error.
func runLog(a *kit.App, repo *local.Repository) (*slog.Logger, func(), error) {
	if a.Verbose {
		return a.Log(), func() {}, nil
	}
	file, err := repo.OpenLog()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return slog.New(slog.NewTextHandler(file, nil)), func() { _ = file.Close() }, nil
}
