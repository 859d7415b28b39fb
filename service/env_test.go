package service

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestEnvMakesWorkersAsConfigured(t *testing.T) {
	t.Parallel()
	e := &Env{
		Config: &Config{Replica: "w1", Workers: 3, DrainTimeout: time.Minute, StateDir: t.TempDir()},
		Log:    slog.New(slog.DiscardHandler), Health: &Health{}, Bus: bustest.Start(t),
	}
	w := e.Worker(Handler{Step: forge.StepAnalyze, Agent: true, Do: untilCancelled})
	if w.Replica != "w1" || w.Parallel != 3 || cap(w.Permits.slots) != 3 || w.Grace != time.Minute {
		t.Errorf("got %+v", w)
	}
	if err := e.Health.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "commands: consumer analyze-on-w1: ") {
		t.Errorf("ready before it runs: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	wait.Until(t, "it is ready", func() bool { return e.Health.Ready(t.Context()) == nil })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
