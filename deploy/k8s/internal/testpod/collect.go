package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttraces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
)

// collector keeps of the telemetry that services send by OTLP who sent it. It has to know no more:
// that the spans are right is tested without a cluster; here the question is whether they arrive
// from every pod, through the network policies.
type collector struct {
	mu sync.Mutex
	// traces has the services of each trace, by its id in hexadecimal, and
	// spans the names of what it has.
	traces, spans map[string]map[string]bool
	// metrics has the services that sent metrics.
	metrics map[string]bool
}

// collect receives OTLP over HTTP. /traces answers a line for each trace with its services,
// sorted, /spans one with the names of its spans, and /metrics the services that sent metrics. It
// listens on 4318, the port of OTLP over HTTP, until the pod is deleted.
func collect() error {
	c := &collector{traces: map[string]map[string]bool{}, spans: map[string]map[string]bool{}, metrics: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.takeTraces)
	mux.HandleFunc("POST /v1/metrics", c.takeMetrics)
	mux.HandleFunc("GET /traces", func(w http.ResponseWriter, _ *http.Request) { c.list(w, c.traces, " ") })
	mux.HandleFunc("GET /spans", func(w http.ResponseWriter, _ *http.Request) { c.list(w, c.spans, ",") })
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprintln(w, strings.Join(slices.Sorted(maps.Keys(c.metrics)), " "))
	})
	server := &http.Server{Addr: ":4318", Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}

// list writes a line for each trace: its id, and what it has, sorted.
func (c *collector) list(w io.Writer, traces map[string]map[string]bool, separator string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, names := range traces {
		fmt.Fprintln(w, id, strings.Join(slices.Sorted(maps.Keys(names)), separator))
	}
}

// takeTraces notes which services took part in which trace, and what they did. A
// span comes when it ends, so that a trace is whole some seconds after its run.
func (c *collector) takeTraces(w http.ResponseWriter, r *http.Request) {
	var in collecttraces.ExportTraceServiceRequest
	if !read(w, r, &in) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range in.GetResourceSpans() {
		for _, scope := range sent.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := fmt.Sprintf("%x", span.GetTraceId())
				if c.traces[id] == nil {
					c.traces[id], c.spans[id] = map[string]bool{}, map[string]bool{}
				}
				c.traces[id][serviceOf(sent.GetResource())], c.spans[id][span.GetName()] = true, true
			}
		}
	}
}

// takeMetrics notes which services send metrics; what they are is looked at where the
// services show them themselves.
func (c *collector) takeMetrics(w http.ResponseWriter, r *http.Request) {
	var in collectmetrics.ExportMetricsServiceRequest
	if !read(w, r, &in) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range in.GetResourceMetrics() {
		c.metrics[serviceOf(sent.GetResource())] = true
	}
}

// read reads a request, and answers it with an error where it cannot. It reports whether the
// request was read; the handler returns at once if not.
func read(w http.ResponseWriter, r *http.Request, in proto.Message) bool {
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(data, in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	return err == nil
}

// serviceOf returns the name that a service gives itself in what it sends.
func serviceOf(r *resource.Resource) string {
	for _, a := range r.GetAttributes() {
		if a.GetKey() == "service.name" {
			return a.GetValue().GetStringValue()
		}
	}
	return "unknown"
}
