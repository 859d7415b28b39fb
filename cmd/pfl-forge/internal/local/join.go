package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/natsd"
)

// ErrEnded is returned when the process that was followed ended before its work did.
var ErrEnded = errors.New("the other run ended before everything was done; run again to continue")

// Follow reports to the observer the work of others, such as an organisation's
// services, until nothing can go on without a person or ctx ends. It changes
// nothing. If only names an intent, it waits for that one.
func Follow(
	ctx context.Context, b *bus.Bus, project forge.ProjectID, only forge.IntentID, observer Observer, log *slog.Logger,
) (*Outcome, error) {
	w := newWatch(b, project, observer)
	w.only = only
	return follow(ctx, w, func(context.Context) bool { return false }, log)
}

// Join is Follow for the run that goes on in another process in this repository.
// It also returns when that process ends. Errors: natsd.ErrNotRunning, ErrEnded.
func Join(ctx context.Context, repo *Repository, only forge.IntentID, observer Observer, log *slog.Logger) (*Outcome, error) {
	s, err := join(ctx, repo, log)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	w := newWatch(s.Bus, repo.Project, observer)
	w.only = only
	outcome, err := follow(ctx, w, s.Gone, log)
	if outcome != nil {
		outcome.Problems, _ = repo.Problems() // unreadable: the run that wrote them tells them too
	}
	return outcome, err
}

// Gone reports whether the process that the session is connected to has ended, even if another
// one runs the server now. It is false for a session that runs the server itself.
func (s *Session) Gone(ctx context.Context) bool {
	if s.server != nil {
		return false
	}
	now, err := natsd.Find(ctx, s.Repo.Root, storeDir)
	return errors.Is(err, natsd.ErrNotRunning) || err == nil && now.ID != s.holder.ID
}

// Running reports whether a run goes on in another process in this repository.
func Running(ctx context.Context, repo *Repository) bool {
	e, err := natsd.Find(ctx, repo.Root, storeDir)
	return err == nil && e.Purpose == purposeRun
}

// follow runs a watch until nothing can go on, gone reports the end of the
// other process, or ctx ends.
func follow(ctx context.Context, w *watch, gone func(context.Context) bool, log *slog.Logger) (*Outcome, error) {
	watching, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.run(watching) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			log.DebugContext(ctx, "following the journals ended", "error", err)
		}
	}()
	for {
		w.pause(ctx, writePause, time.Second)
		all, _ := w.views.summaries()
		outcome := &Outcome{Intents: all, Interrupted: ctx.Err() != nil, Joined: true}
		switch {
		case ctx.Err() != nil:
			return outcome, nil
		case gone(ctx):
			if !w.allIdle() || !w.complete() {
				return outcome, ErrEnded
			}
			return outcome, nil
		}
		select {
		case err := <-ended:
			ended <- err
			return outcome, fmt.Errorf("following the journals: %w", err)
		default:
		}
		if !w.complete() {
			continue
		}
		quiet, err := w.quiet(ctx)
		if err != nil && ctx.Err() == nil {
			continue // the server is away: gone says whether for good
		}
		if quiet {
			outcome.Intents, _ = w.views.summaries() // what came in meanwhile
			return outcome, nil
		}
		w.noticeWaits()
	}
}

// complete reports whether the views have everything from before the start.
func (w *watch) complete() bool {
	select {
	case <-w.caughtUp:
		return true
	default:
		return false
	}
}
