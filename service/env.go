package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/bus"
)

// Env is what a service gets from [Main].
type Env struct {
	Name   string
	Config *Config
	Log    *slog.Logger // carries the service's and the replica's name
	Health *Health      // add what readiness depends on
	Bus    *bus.Bus     // connected

	stops []func()
}

// Worker returns a worker as configured; readiness then depends on its consumers.
// Without a place for its outbox it works all the same.
func (e *Env) Worker(handlers ...Handler) *Worker {
	outbox, err := OpenOutbox(filepath.Join(e.Config.StateDir, "outbox", e.Name), e.Log)
	if err != nil {
		e.Log.Error("results are not kept until they are journaled", "err", err)
	}
	for _, h := range handlers {
		e.Health.Add("commands", func(ctx context.Context) error {
			return e.Bus.Commands.Ready(ctx, h.Step, e.Config.Replica)
		})
	}
	return &Worker{
		Bus: e.Bus, Replica: e.Config.Replica, Log: e.Log, Handlers: handlers,
		Parallel: e.Config.Workers, Permits: NewPermits(e.Config.Workers), Outbox: outbox, Grace: e.Config.DrainTimeout,
		Shared: true, Secrets: e.secrets(),
	}
}

// open starts the health endpoint and connects, for as long as that takes. What it
// opened before an error, close closes.
func (e *Env) open(ctx context.Context) error {
	if e.Config.Listen != "" {
		_, stop, err := e.Health.serve(ctx, e.Config.Listen, e.Log)
		if err != nil {
			return err
		}
		e.stops = append(e.stops, stop)
	}
	var connected atomic.Pointer[bus.Bus]
	e.Health.Add("nats", func(ctx context.Context) error {
		if b := connected.Load(); b != nil {
			return b.Ping(ctx)
		}
		return errors.New("not connected yet")
	})
	cfg := bus.Config{
		URL: e.Config.Server, Creds: e.Config.Creds, Replicas: e.Config.Replicas,
		Name: e.Name + "/" + string(e.Config.Replica), Logger: e.Log,
	}
	if e.Config.TokenFile != "" {
		if _, err := e.Config.Token(); err != nil {
			return fmt.Errorf("--token-file (FORGE_TOKEN_FILE): %w", err)
		}
		cfg.ReadToken = e.Config.Token
	}
	var err error
	e.Bus, err = bus.Connect(ctx, cfg)
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	if e.Bus != nil && err != nil {
		e.Bus.Close()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", hidePasswords(e.Config.Server), err)
	}
	e.stops = append(e.stops, e.Bus.Close)
	connected.Store(e.Bus)
	return nil
}

func (e *Env) close() {
	for _, stop := range slices.Backward(e.stops) {
		stop()
	}
}
