package service

import (
	"context"
	"log/slog"
)

// Env is what a service gets from [Main].
type Env struct {
	Name   string
	Config *Config
	Log    *slog.Logger // carries the service's and the replica's name
	Health *Health      // add what readiness depends on

	stops []func()
}

// open starts the health endpoint and connects.
func (e *Env) open(ctx context.Context) error {
	if e.Config.Listen != "" {
		_, stop, err := e.Health.serve(ctx, e.Config.Listen, e.Log)
		if err != nil {
			return err
		}
		e.stops = append(e.stops, stop)
	}
	return nil
}

func (e *Env) close() {
	for i := len(e.stops) - 1; i >= 0; i-- {
		e.stops[i]()
	}
}
