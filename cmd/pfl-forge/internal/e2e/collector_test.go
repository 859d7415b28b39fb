package e2e

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// collector takes what services send by OTLP. Names and ids are in it as they are, so that
// it need not be decoded.
type collector struct {
	t   *testing.T
	url string

	mu              sync.Mutex
	metrics, traces strings.Builder
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{t: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// ServeHTTP implements http.Handler.
func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil: // the sender was killed
	case r.URL.Path == "/v1/metrics":
		c.metrics.Write(body)
	case r.URL.Path == "/v1/traces":
		c.traces.Write(body)
	default:
		c.t.Errorf("a service sends to %s", r.URL.Path)
	}
}

// complete waits until every service has sent metrics, and the first intent's trace with its
// first and its last span is there. It returns the id of that trace.
func (c *collector) complete() string {
	c.t.Helper()
	run := telemetry.Run{Key: forge.Key{Project: project, Intent: "append-00"}, Number: 1}
	id, err := hex.DecodeString(run.TraceID())
	if err != nil {
		c.t.Fatal(err)
	}
	wait.Until(c.t, "metrics and traces have arrived", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		metrics, traces := c.metrics.String(), c.traces.String()
		for _, want := range []string{
			"runner-1", "analyzer-1", "implementer-1", "implementer-2", "reviewer-1", "reflector-1",
			"forge.intents", "forge.step.queue.depth", "forge.dead_letters", "forge.attempts",
		} {
			if !strings.Contains(metrics, want) {
				return false
			}
		}
		// An id is 16 bytes, with its tag and length before.
		return strings.Count(traces, "\x0a\x10"+string(id)) > 2 && strings.Contains(traces, "\x03run") && strings.Contains(traces, "\x05merge")
	})
	return run.TraceID()
}
