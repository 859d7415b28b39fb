package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/logging"
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
// own, make one trace of an intent's run, the merge included, which the project issues. Each line
// that the runner logs about the intent names that trace.
func TestRunIsOneTrace(t *testing.T) {
	t.Parallel()
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
	var log bytes.Buffer
	group.Go(func() error {
		lines := slog.New(logging.Handler(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
		return runner.Run(ctx, runner.Config{Bus: b, Log: lines, Ready: func() { close(ready) }, Metrics: decides})
	})
	<-ready
	w := &service.Worker{Bus: s.Connect(t), Replica: "w1", Log: slog.New(slog.DiscardHandler), Parallel: 2, Metrics: works}
	for _, step := range forge.Steps() {
		do := func(_ context.Context, c forge.Command, _ service.Progress) forge.Result { return succeed(c) }
		w.Handlers = append(w.Handlers, service.Handler{Step: step, Do: do})
	}
	group.Go(func() error { return w.Run(ctx) })
	if _, err := b.Submissions.Ask(t.Context(), submission("traced")); err != nil {
		t.Fatal(err)
	}
	await(t, b, forge.StatusDone, "traced")
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
	key := submission("traced").To
	id := telemetry.Run{Key: key, Number: 1}.TraceID()
	checkLines(t, &log, key, id)
	names := map[string]int{}
	for _, one := range kept.list {
		names[one.Name()]++
		if got := one.SpanContext().TraceID().String(); got != id {
			t.Errorf("%s is in trace %s", one.Name(), got)
		}
	}
	// The first analyze of a project reads its policy, the second one analyzes.
	for name, want := range map[string]int{"run": 1, "analyze": 2, "implement": 1, "rebase": 1, "review": 1, "merge": 1} {
		if names[name] != want {
			t.Errorf("%d spans %q, not %d: %v", names[name], name, want, names)
		}
	}
}

// checkLines checks that all lines that mention an intent say that they are about it, and in which
// trace, and that there is one for each step of its run.
func checkLines(t *testing.T, log *bytes.Buffer, key forge.Key, trace string) {
	t.Helper()
	steps := map[forge.Step]bool{}
	for text := range strings.Lines(log.String()) {
		var line struct {
			Intent, Attempt string
			Trace           string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if !strings.Contains(text, string(key.Intent)) {
			continue
		}
		if line.Intent != key.String() || line.Trace != trace {
			t.Errorf("a line about %s in trace %s is %s", key, trace, text)
		}
		if parts := strings.Split(line.Attempt, "/"); len(parts) > 1 {
			steps[forge.Step(parts[1])] = true
		}
	}
	for _, step := range []forge.Step{forge.StepAnalyze, forge.StepImplement, forge.StepRebase, forge.StepReview, forge.StepMerge} {
		if !steps[step] {
			t.Errorf("no line is about a step %s: %s", step, log)
		}
	}
}
