package export_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/otlptest"
)

// TestOTLPArrives: metrics and spans reach a collector when the variables name it, at the
// latest when the process ends.
func TestOTLPArrives(t *testing.T) {
	received := otlptest.Start(t)
	e, err := export.Open(t.Context(), export.Config{
		Service: "reviewer", Replica: "r1", Version: "v1", Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	run := telemetry.Run{Key: forge.Key{Project: "shop", Intent: "fix"}, Number: 1}
	cmd := &forge.Command{To: run.Key, Attempt: forge.Attempt{Step: forge.StepReview, Number: 1, Claim: 1}}
	_, finish := e.Recorder.Attempt(t.Context(), run, cmd)
	finish(&forge.Result{})
	record(t, e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for _, i := range telemetry.Instruments() {
		if !slices.Contains(received.Metrics(), i.Name) {
			t.Errorf("%s has not arrived", i.Name)
		}
	}
	if spans := received.Spans(); len(spans) != 1 || spans[0].Name != "review" || spans[0].Trace != run.TraceID() {
		t.Errorf("spans %+v, want one in %s", spans, run.TraceID())
	}
	if services := received.Services(); !slices.Equal(services, []string{"reviewer"}) {
		t.Errorf("sent by %q", services)
	}
}

// TestCollectorHangs: a collector that never answers holds neither work nor the end of a
// process up.
func TestCollectorHangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	e, err := export.Open(t.Context(), export.Config{Service: "s", Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	record(t, e)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("recording took %s", took)
	}
	if err := e.Close(); err == nil {
		t.Error("what was not sent is not told")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// TestUnknownExports: a form that is not spoken is refused with the name of its variable.
func TestUnknownExports(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not spoken here; use http/protobuf`},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "grpc"`},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "http/json"`},
		{map[string]string{"OTEL_METRICS_EXPORTER": "prometheus"}, `OTEL_METRICS_EXPORTER: "prometheus" is not known here; use otlp or none`},
		{map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `OTEL_TRACES_EXPORTER: "zipkin"`},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_SDK_DISABLED": "true"}, ""},
	} {
		c.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = "http://127.0.0.1:1"
		e, err := export.Open(t.Context(), export.Config{Getenv: func(k string) string { return c.env[k] }, Log: slog.New(slog.DiscardHandler)})
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || c.want == "" && err != nil {
			t.Errorf("%v: %v", c.env, err)
		}
		if err == nil {
			_ = e.Close() // nobody listens there
		}
	}
}
