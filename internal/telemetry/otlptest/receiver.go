// Package otlptest is a collector for tests: it takes what is sent by OTLP over HTTP, decoded as
// the protocol says, and keeps it.
//
// Start sets the OTEL_ variables of the test's process, so the code under test is
// configured as an operator would do it. What cannot be decoded fails the test.
package otlptest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resources "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Authorization is the header that every sender has to come with.
const Authorization = "Bearer x"

// Span is one that has arrived.
type Span struct {
	Name string
	// Trace, ID and Parent are in hexadecimal; Parent is empty for the first one of a trace.
	Trace, ID, Parent string
	// Attributes are their values as text.
	Attributes map[string]string
	// Failed says that its status is an error, and Status is the text beside it.
	Failed bool
	Status string
}

// Receiver is the collector. It is safe for concurrent use.
type Receiver struct {
	mu       sync.Mutex
	services map[string]bool
	metrics  map[string]bool
	spans    []Span
	problems []error
}

// Start starts a Receiver and has the variables of this process name it. What it could not read
// fails the test when that ends.
func Start(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{services: map[string]bool{}, metrics: map[string]bool{}}
	server := httptest.NewServer(r)
	t.Cleanup(func() {
		server.Close()
		if err := errors.Join(r.problems...); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+Authorization)
	return r
}

// Services returns the names of those that have sent something, sorted.
func (r *Receiver) Services() []string { return r.keys(r.services) }

// Metrics returns the names of the metrics that have arrived, sorted.
func (r *Receiver) Metrics() []string { return r.keys(r.metrics) }

// Spans returns the spans that have arrived, in that order.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

func (r *Receiver) keys(m map[string]bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(m))
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !strings.HasPrefix(req.URL.Path, "/v1/") && req.Header.Get("Authorization") == "" {
		http.NotFound(w, req) // of another test's client, whose server had this port before
		return
	}
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Header.Get("Authorization") != Authorization {
		err = errors.Join(err, errors.New("a request comes without the credentials of OTEL_EXPORTER_OTLP_HEADERS"))
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
					r.spans = append(r.spans, spanOf(s))
				}
			}
		}
	default:
		err = errors.Join(err, fmt.Errorf("something is sent to %s", req.URL.Path))
	}
	if err != nil {
		r.problems = append(r.problems, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// sender notes the name of a service.
func (r *Receiver) sender(who *resources.Resource) {
	for _, kv := range who.GetAttributes() {
		if kv.GetKey() == "service.name" {
			r.services[kv.GetValue().GetStringValue()] = true
		}
	}
}

// spanOf returns a span as tests compare it.
func spanOf(s *spans.Span) Span {
	got := Span{
		Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Attributes: map[string]string{}, Failed: s.GetStatus().GetCode() == spans.Status_STATUS_CODE_ERROR, Status: s.GetStatus().GetMessage(),
	}
	for _, kv := range s.GetAttributes() {
		got.Attributes[kv.GetKey()] = textOf(kv.GetValue())
	}
	return got
}

// textOf returns a value as text.
func textOf(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	}
	return v.String()
}
