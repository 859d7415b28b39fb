package runner_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// spans keeps the names and parents of what is exported.
type spans struct {
	mu   sync.Mutex
	list []sdktrace.ReadOnlySpan
}

func (s *spans) ExportSpans(_ context.Context, list []sdktrace.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, list...)
	return nil
}

func (s *spans) Shutdown(context.Context) error { return nil }

// TestRunIsOneTrace: the runner and each worker, with a connection and an export of its
// own, make one trace of an intent's run, the merge included, which the project issues.
func TestRunIsOneTrace(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	kept := &spans{}
	var exports []*export.Export
	open := func(name string) *telemetry.Recorder {
		e, err := export.Open(t.Context(), export.Config{
			Service: name, Spans: kept, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		exports = append(exports, e)
		return e.Recorder
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	decides, works := open("runner"), open("worker")
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }, Metrics: decides})
	})
	<-ready
	w := &service.Worker{Bus: s.Connect(t), Replica: "w1", Log: slog.New(slog.DiscardHandler), Parallel: 2, Metrics: works}
	for _, step := range forge.Steps() {
		do := func(_ context.Context, c forge.Command, _ service.Progress) forge.Result { return succeed(c) }
		w.Handlers = append(w.Handlers, service.Handler{Step: step, Do: do})
	}
	group.Go(func() error { return w.Run(ctx) })
	if _, err := b.Submissions.Ask(t.Context(), submission("one")); err != nil {
		t.Fatal(err)
	}
	await(t, b, forge.StatusDone, "one")
	wait.Until(t, "the project was told", func() bool { idle, err := b.Events.Idle(t.Context()); return err == nil && idle })
	cancel()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, e := range exports {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	names := map[string]int{}
	for _, one := range kept.list {
		names[one.Name()]++
		if id := one.SpanContext().TraceID().String(); id != (telemetry.Run{Key: submission("one").To, Number: 1}).TraceID() {
			t.Errorf("%s is in trace %s", one.Name(), id)
		}
	}
	// The first analyze of a project reads its policy, the second one analyzes.
	for name, want := range map[string]int{"run": 1, "analyze": 2, "implement": 1, "rebase": 1, "review": 1, "merge": 1} {
		if names[name] != want {
			t.Errorf("%d spans %q, not %d: %v", names[name], name, want, names)
		}
	}
}
