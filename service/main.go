package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	supervised "github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/environ"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// Exit codes of a service.
const (
	exitOK          = 0
	exitError       = 1
	exitInterrupted = 130
)

// overtime is how long a service may take to end after its drain timeout: to hand
// work back, to close and to flush.
const overtime = 5 * time.Second

// Main is the whole main of a service. It reads the configuration, connects, and
// calls run. The first SIGTERM or SIGINT ends run's context: run then finishes or
// hands back what it is doing, and returns nil. A second one exits at once.
func Main(name string, run func(ctx context.Context, env *Env) error) {
	environ.Hide()           // before Protect, which takes the right to erase
	_ = supervised.Protect() // it holds keys; elsewhere than on Linux there is nothing like it
	CollectSeldom(os.Getenv)
	os.Exit(newProcess(name).main(run))
}

// newProcess returns this process as a service, and takes its signals.
func newProcess(name string) *process {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	return &process{
		name: name, args: os.Args[1:], getenv: environ.Get, signals: signals,
		stdout: os.Stdout, stderr: os.Stderr, overtime: overtime, refusedFor: credentialsPatience,
	}
}

// process holds everything that Main uses of the world outside; tests replace it.
type process struct {
	name           string
	args           []string
	getenv         func(string) string
	signals        <-chan os.Signal
	stdout, stderr io.Writer
	overtime       time.Duration
	// refusedFor is how long refused credentials are tried again.
	refusedFor time.Duration
}

// main runs the service and returns the exit code.
func (p *process) main(run func(context.Context, *Env) error) int {
	cfg, err := Parse(p.name, p.args, p.getenv)
	switch {
	case errors.Is(err, ErrHelp):
		writeHelp(p.stdout, p.name, p.getenv)
		return exitOK
	case errors.Is(err, ErrVersion):
		fmt.Fprintln(p.stdout, p.name, Version())
		return exitOK
	case err != nil:
		fmt.Fprintf(p.stderr, "%s: %v\n", p.name, err)
		return exitError
	}
	log := newLogger(p.stderr, cfg).With("service", p.name, "replica", string(cfg.Replica))
	log.Info("start", "version", Version(), "config", cfg)
	return p.supervise(log, cfg, func(ctx context.Context, env *Env) error {
		defer env.close()
		if err := env.open(ctx); err != nil {
			return err
		}
		env.Announce(ctx, nil, presence.Executor{})
		defer env.announcer.Leave()
		return env.named(run(ctx, env))
	})
}

// supervise calls run, ends its context at the first signal, and returns without
// waiting for run at the second one or when the drain timeout is over.
func (p *process) supervise(log *slog.Logger, cfg *Config, run func(context.Context, *Env) error) int {
	ctx, drain := context.WithCancel(context.Background())
	defer drain()
	env := &Env{Name: p.name, Config: cfg, Log: log, Health: &Health{}, started: time.Now().UTC(), refusedFor: p.refusedFor, getenv: p.getenv}
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, env) }()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			return p.exitCode(log, err, late != nil)
		case sig := <-p.signals:
			if late != nil {
				log.Warn("second signal: exit at once, work is picked up elsewhere", "signal", sig.String())
				return exitInterrupted
			}
			log.Info("drain", "signal", sig.String(), "timeout", cfg.DrainTimeout)
			env.Health.Drain()
			drain()
			t := time.NewTimer(cfg.DrainTimeout + p.overtime)
			defer t.Stop()
			late = t.C
		case <-late:
			log.Warn("not drained in time: exit, work is picked up elsewhere")
			return exitError
		}
	}
}

// exitCode logs how the service ended. A cancelled context is no error while it
// drains.
func (p *process) exitCode(log *slog.Logger, err error, draining bool) int {
	if err == nil || draining && errors.Is(err, context.Canceled) {
		log.Info("end")
		return exitOK
	}
	log.Error("end", "error", err)
	return exitError
}

// newLogger returns a logger with the configured level and format.
func newLogger(w io.Writer, cfg *Config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.Log.Level}
	if cfg.Log.Format == "text" {
		return slog.New(logging.Handler(slog.NewTextHandler(w, opts)))
	}
	return slog.New(logging.Handler(slog.NewJSONHandler(w, opts)))
}
