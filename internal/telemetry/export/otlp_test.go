package export_test

import (
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
)

// receiver takes what is sent by OTLP over HTTP.
type receiver struct {
	mu sync.Mutex
	// services has who sent something, metrics the names of metrics, and spans the names of
	// spans with their traces.
	services, metrics map[string]bool
	spans             map[string]string
	problems          []error
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	if req.Header.Get("Authorization") != "Bearer x" {
		err = errors.Join(err, errors.New("no credentials of OTEL_EXPORTER_OTLP_HEADERS"))
	}
	switch req.URL.Path {
	case "/v1/metrics":
		var got collectmetrics.ExportMetricsServiceRequest
		err = errors.Join(err, proto.Unmarshal(body, &got))
		for _, of := range got.GetResourceMetrics() {
			r.sender(of.GetResource())
			for _, in := range of.GetScopeMetrics() {
				for _, m := range in.GetMetrics() {
					r.metrics[m.GetName()] = true
				}
			}
		}
	case "/v1/traces":
		var got collecttraces.ExportTraceServiceRequest
		err = errors.Join(err, proto.Unmarshal(body, &got))
		for _, of := range got.GetResourceSpans() {
			r.sender(of.GetResource())
			for _, in := range of.GetScopeSpans() {
				for _, s := range in.GetSpans() {
					r.spans[s.GetName()] = string(s.GetTraceId())
				}
			}
		}
	default:
		err = errors.New(req.URL.Path)
	}
	if err != nil {
		r.problems = append(r.problems, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// sender notes the name of a service.
func (r *receiver) sender(who *resources.Resource) {
	for _, kv := range who.GetAttributes() {
		if kv.GetKey() == "service.name" {
			r.services[kv.GetValue().GetStringValue()] = true
		}
	}
}

// TestOTLPArrives: metrics and spans reach a collector when the variables name it, at the
// latest when the process ends.
func TestOTLPArrives(t *testing.T) {
	r := &receiver{services: map[string]bool{}, metrics: map[string]bool{}, spans: map[string]string{}}
	server := httptest.NewServer(r)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer x")
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range telemetry.Instruments() {
		if !r.metrics[i.Name] {
			t.Errorf("%s has not arrived", i.Name)
		}
	}
	if id := []byte(r.spans["review"]); hex.EncodeToString(id) != run.TraceID() || len(r.spans) != 1 {
		t.Errorf("spans %q, want one in %s", r.spans, run.TraceID())
	}
	if len(r.services) != 1 || !r.services["reviewer"] || len(r.problems) > 0 {
		t.Errorf("sent by %v; %v", r.services, r.problems)
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
	if took := time.Since(began); took > time.Second {
		t.Errorf("recording took %s", took)
	}
	if err := e.Close(); err == nil {
		t.Error("what was not sent is not told")
	}
	if took := time.Since(began); took > 8*time.Second {
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
