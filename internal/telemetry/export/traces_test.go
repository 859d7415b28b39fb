package export_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
)

// replica returns a process that exports its spans, and a function that ends it and returns
// them.
func replica(t *testing.T, env map[string]string) (r *telemetry.Recorder, end func() tracetest.SpanStubs) {
	t.Helper()
	kept := &keptSpans{tracetest.NewInMemoryExporter()}
	e, err := export.Open(t.Context(), export.Config{
		Service: "s", Spans: kept, Getenv: func(k string) string { return env[k] }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e.Recorder, func() tracetest.SpanStubs {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		return kept.GetSpans()
	}
}

// keptSpans keeps spans also when the process ends.
type keptSpans struct{ *tracetest.InMemoryExporter }

func (keptSpans) Shutdown(context.Context) error { return nil }

// TestReplicasAgreeOnTraces: what two workers and a runner export makes one trace, although
// none has told another one anything but the run.
func TestReplicasAgreeOnTraces(t *testing.T) {
	run := telemetry.Run{Key: forge.Key{Project: "shop", Intent: "fix"}, Number: 2}
	cmd := &forge.Command{To: run.Key, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepRebase, Number: 1, Claim: 1}}
	var all tracetest.SpanStubs
	for range 2 {
		r, end := replica(t, nil)
		ctx, finish := r.Attempt(t.Context(), run, cmd)
		if id := telemetry.TraceIDOf(ctx); id != run.TraceID() {
			t.Errorf("trace %s, want %s", id, run.TraceID())
		}
		inner, done := telemetry.Span(ctx, "verify")
		if env := telemetry.Environment(inner); len(env) != 1 || env[0] != fmt.Sprintf("TRACEPARENT=00-%s-%s-01", run.TraceID(), spanOf(inner)) {
			t.Errorf("the environment is %q", env)
		}
		done(errors.New("a secret"))
		finish(&forge.Result{Output: &forge.Failure{Reason: forge.FailTimeout, Message: "a secret"}})
		all = append(all, end()...)
	}
	r, end := replica(t, nil)
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	r.RunEnded(run, &forge.History{StartedAt: at, CreatedAt: at.Add(time.Hour), Outcome: "success"})
	all = append(all, end()...)
	if len(all) != 5 {
		t.Fatalf("%d spans", len(all))
	}
	byID, roots := map[string]tracetest.SpanStub{}, 0
	for _, s := range all {
		byID[s.SpanContext.SpanID().String()] = s
	}
	for _, s := range all {
		if s.SpanContext.TraceID().String() != run.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		if fmt.Sprint(s.Status, s.Attributes, s.Events) != "" && containsSecret(s) {
			t.Errorf("%s tells a secret: %+v", s.Name, s)
		}
		if !s.Parent.SpanID().IsValid() {
			roots++
			if s.Name != "run" || !s.StartTime.Equal(at) || s.EndTime.Sub(s.StartTime) != time.Hour {
				t.Errorf("the first span is %+v", s)
			}
			continue
		}
		want := map[string]string{"rebase": "run", "verify": "rebase"}[s.Name]
		if parent := byID[s.Parent.SpanID().String()]; parent.Name != want {
			t.Errorf("%s is below %q", s.Name, parent.Name)
		}
	}
	if roots != 1 || len(byID) != 5 {
		t.Errorf("%d first spans, %d ids", roots, len(byID))
	}
}

// spanOf returns the id of the span of ctx.
func spanOf(ctx context.Context) string { return trace.SpanContextFromContext(ctx).SpanID().String() }

// containsSecret reports whether a span holds the text of an error.
func containsSecret(s tracetest.SpanStub) bool {
	for _, kv := range s.Attributes {
		if kv.Value.AsString() == "a secret" {
			return true
		}
	}
	return s.Status.Description == "a secret" || len(s.Events) > 0
}

// Runs, intents and projects have traces of their own, also where their names touch.
func TestTracesAreApart(t *testing.T) {
	seen := map[string]telemetry.Run{}
	for _, run := range []telemetry.Run{
		{Key: forge.Key{Project: "a", Intent: "b"}, Number: 1},
		{Key: forge.Key{Project: "a", Intent: "b"}, Number: 11},
		{Key: forge.Key{Project: "a", Intent: "b1"}, Number: 1},
		{Key: forge.Key{Project: "ab", Intent: ""}, Number: 1},
		{Key: forge.Key{Project: "", Intent: "ab"}, Number: 1},
	} {
		if other, ok := seen[run.TraceID()]; ok {
			t.Errorf("%+v and %+v have one trace", run, other)
		}
		seen[run.TraceID()] = run
	}
}

// A sampler takes the same traces at every replica; a wrong one is refused.
func TestSampler(t *testing.T) {
	took := map[string]int{}
	for range 2 {
		r, end := replica(t, map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"})
		for n := range 100 {
			run := telemetry.Run{Key: forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprint("i", n))}, Number: 1}
			_, finish := r.Attempt(t.Context(), run, &forge.Command{})
			finish(&forge.Result{})
		}
		for _, s := range end() {
			took[s.SpanContext.TraceID().String()]++
		}
	}
	if len(took) < 20 || len(took) > 80 {
		t.Errorf("%d of 100 traces", len(took))
	}
	for id, n := range took {
		if n != 2 {
			t.Errorf("%s was taken by %d replicas", id, n)
		}
	}
	for _, env := range []map[string]string{
		{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"},
	} {
		_, err := export.Open(t.Context(), export.Config{Spans: tracetest.NewInMemoryExporter(), Getenv: func(k string) string { return env[k] }})
		if err == nil {
			t.Errorf("%v is taken", env)
		}
	}
}

// Without tracing, nothing of it is in the way.
func TestNoTraces(t *testing.T) {
	r := open(t).Recorder
	ctx, finish := r.Attempt(t.Context(), telemetry.Run{}, &forge.Command{})
	finish(&forge.Result{})
	if ctx != t.Context() || telemetry.Environment(ctx) != nil || r.Tracing() {
		t.Error("there is a trace")
	}
	r.RunEnded(telemetry.Run{}, &forge.History{})
}
