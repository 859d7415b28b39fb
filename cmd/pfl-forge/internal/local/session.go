package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// storeDir is where the embedded server keeps its streams.
const storeDir = ".forge/nats"

// keptDir holds files and stores that had to give way.
const keptDir = ".forge/kept"

// The purposes for which a process holds the store, as other processes read
// them.
const (
	// purposeRun holds the store for long; other processes connect to it.
	purposeRun = "run"
	// purposeCommand holds the store for a moment; other processes wait.
	purposeCommand = "command"
)

const (
	// commandPatience bounds the time to wait for one command to get out of the
	// way.
	commandPatience = 15 * time.Second
	// pollStore is the interval at which to look whether they have.
	pollStore = 10 * time.Millisecond
	// settleTime bounds the time in which the consequences of a command are
	// decided.
	settleTime = 3 * time.Second
)

// ErrNoStore is returned for a repository in which no intent was ever
// submitted.
var ErrNoStore = errors.New("no intent was submitted here yet")

// Session is a connection to a repository's server, which may run in this
// process. One of OpenReader and Open makes it; its owner closes it.
type Session struct {
	// Bus is connected for as long as the session is open.
	Bus  *bus.Bus
	Repo *Repository

	log *slog.Logger
	// server is nil if another process runs it.
	server *natsd.Server
	// holder is the endpoint of that process.
	holder *natsd.Endpoint
	// since is the time of the session's start: files of intents that changed
	// after it are written at its end.
	since time.Time
	// files is nil in a reader, and if another process runs the server.
	files *filesSync
	// stop ends the runner, if the session has one.
	stop   func()
	runner sync.WaitGroup
}

// OpenReader returns a session that only reads. Nothing is decided meanwhile, unless
// another process does that. Error: ErrNoStore.
func OpenReader(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	if _, err := os.Stat(filepath.Join(repo.Root, storeDir)); errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoStore
	}
	return open(ctx, repo, log)
}

// Open returns a session in which a person's requests are decided at once: by
// the run that goes on in another process, or else by a runner in this one,
// which first takes in the edits that the person saved in files.
func Open(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	return openDeciding(ctx, repo, runner.Config{}, log)
}

// OpenServing is Open for who asks as other systems do: by requests, which the
// runner answers once it is up.
func OpenServing(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	return openDeciding(ctx, repo, runner.Config{Serve: true}, log)
}

// openDeciding is Open with the configuration of the runner that this process may need.
func openDeciding(ctx context.Context, repo *Repository, cfg runner.Config, log *slog.Logger) (*Session, error) {
	s, err := open(ctx, repo, log)
	if err != nil || s.server == nil {
		return s, err
	}
	if err := s.decide(ctx, cfg); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// open starts the server, or finds it if a run has it.
func open(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	return retried(ctx, func() (*Session, error) {
		s, err := start(ctx, repo, purposeCommand, log)
		if held, ok := errors.AsType[*natsd.HeldError](err); ok && held.Purpose == purposeRun {
			return join(ctx, repo, log)
		}
		return s, err
	})
}

// OpenEmpty starts the server of a repository and makes no streams, so that a backup can take its
// place. Error: *natsd.HeldError if a run has the server.
func OpenEmpty(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	return retried(ctx, func() (*Session, error) { return startServer(ctx, repo, purposeCommand, log) })
}

// openRun starts the server for a run. Error: *natsd.HeldError if another run has it.
func openRun(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	return retried(ctx, func() (*Session, error) { return start(ctx, repo, purposeRun, log) })
}

// retried calls try again while a command holds the store, or while its owner
// is just ending: for 15 seconds with each owner, so that a queue of commands is waited for
// however long it is, and one that hangs is not. A store that a run holds is not waited for.
func retried(ctx context.Context, try func() (*Session, error)) (*Session, error) {
	deadline := time.Now().Add(commandPatience)
	var owner time.Time // when the owner waited for began
	for {
		s, err := try()
		held, ok := errors.AsType[*natsd.HeldError](err)
		again := ok && held.Purpose != purposeRun || errors.Is(err, natsd.ErrNotRunning)
		if ok && held.Since.After(owner) {
			owner, deadline = held.Since, time.Now().Add(commandPatience)
		}
		if !again || time.Now().After(deadline) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollStore):
		}
	}
}

// start makes this process the owner of the server, and makes the streams that
// are missing. Error: *natsd.HeldError.
func start(ctx context.Context, repo *Repository, purpose string, log *slog.Logger) (*Session, error) {
	s, err := startServer(ctx, repo, purpose, log)
	if err != nil {
		return nil, err
	}
	if err := s.Bus.Ensure(ctx); err != nil {
		s.Bus.Close()
		s.server.Shutdown()
		return nil, err
	}
	return s, nil
}

// startServer makes this process the owner of the server. Error: *natsd.HeldError.
func startServer(ctx context.Context, repo *Repository, purpose string, log *slog.Logger) (*Session, error) {
	if err := repo.checkOwn(ctx); err != nil {
		return nil, err
	}
	server, err := natsd.Start(ctx, natsd.Config{Root: repo.Root, Dir: storeDir, Purpose: purpose, Logger: log})
	if err != nil {
		return nil, err
	}
	b, err := connect(ctx, server.Endpoint(), log)
	if err != nil {
		server.Shutdown()
		return nil, err
	}
	return &Session{Bus: b, Repo: repo, log: log, server: server, since: time.Now(), stop: func() {}}, nil
}

// join connects to the server in another process. Error: natsd.ErrNotRunning.
func join(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	endpoint, err := natsd.Find(ctx, repo.Root, storeDir)
	if err != nil {
		return nil, err
	}
	b, err := connect(ctx, *endpoint, log)
	if err != nil {
		return nil, err
	}
	return &Session{Bus: b, Repo: repo, log: log, holder: endpoint, since: time.Now(), stop: func() {}}, nil
}

// connect connects to a server on this machine, within five seconds.
func connect(ctx context.Context, e natsd.Endpoint, log *slog.Logger) (*bus.Bus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return bus.Connect(ctx, bus.Config{
		URL: e.URL, Token: e.Token, Name: fmt.Sprintf("pfl-forge/%d", os.Getpid()), Replicas: 1, Logger: log,
	})
}

// Healthy returns the server's problem, with the remedy; nil if there is none.
func (s *Session) Healthy(ctx context.Context) error {
	if s.server != nil {
		return s.server.Healthy(ctx)
	}
	return s.Bus.Ping(ctx)
}

// Holder returns the process that runs the server, and since when; 0 if it is this
// one.
func (s *Session) Holder() (pid int, since time.Time) {
	if s.holder == nil {
		return 0, s.since
	}
	return s.holder.PID, s.holder.StartedAt
}

// Owner returns whether the server runs in this process.
func (s *Session) Owner() bool { return s.server != nil }

// decide starts a runner, and submits the edits that a person saved in files
// before.
func (s *Session) decide(ctx context.Context, cfg runner.Config) error {
	var err error
	if s.files, err = openFilesSync(s.Bus, s.Repo, s.log); err != nil {
		return err
	}
	if err := s.files.checkWhole(ctx); err != nil {
		s.files.close()
		s.files = nil // nothing is written: the files are all that is left of what is lost
		return err
	}
	ready := s.startRunner(ctx, cfg)
	select {
	case <-ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err = s.files.edits(ctx)
	return err
}

// startRunner starts a runner, and returns a channel that is closed once everything
// that was under way is in force again.
func (s *Session) startRunner(ctx context.Context, cfg runner.Config) <-chan struct{} {
	// Nobody else decides here: what a runner took that was killed can come at once.
	if err := s.Bus.Events.Reclaim(ctx); err != nil {
		s.log.WarnContext(ctx, "events that were being decided on come later", "error", err)
	}
	ready := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = cancel
	s.runner.Go(func() {
		cfg.Rules.Alone, cfg.OneProject = true, true // this process has the lock of the store
		cfg.Bus, cfg.Log, cfg.Ready = s.Bus, s.log, func() { close(ready) }
		if err := runner.Run(ctx, cfg); err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "the runner ended", "error", err)
		}
	})
	return ready
}

// Close ends the session and closes its repository. If this process decided,
// the files show it, and everything that follows from a decision without a
// worker was decided as well.
func (s *Session) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if s.files != nil {
		s.waitIdle(ctx)
		if err := s.files.writeSince(ctx, s.since); err != nil {
			s.log.WarnContext(ctx, "cannot update the files; the next run will", "error", err)
		}
	}
	s.stop()
	s.runner.Wait()
	if s.files != nil {
		s.files.close()
	}
	s.Bus.Close()
	if s.server != nil {
		s.server.Shutdown()
	}
	s.Repo.Close()
}

// waitIdle waits until the consequences of a decision are decided as well.
func (s *Session) waitIdle(ctx context.Context) {
	for {
		idle, err := s.Bus.Events.Idle(ctx)
		if idle || err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}
