package service_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestMetricsEndpoint: a service that carries out a command tells so, also what is known
// before it is connected.
func TestMetricsEndpoint(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Stop()
	c := startChildThat(t, "finish", t.TempDir(), "--server", s.URL(), "--replica=w1", "--project=shop=/none")
	code, body := c.get("/metrics")
	if code != http.StatusOK || !strings.Contains(body, "forge_build_info_ratio{") || !strings.Contains(body, `service_instance_id="w1"`) {
		t.Errorf("%d\n%s", code, body)
	}
	s.Start(t)
	r := newRunner(t, s.Connect(t))
	c.becomes("ok")
	r.start(analyze(1))
	r.result()
	for _, want := range []string{
		`forge_attempts_total{error_type="",forge_outcome="ok",forge_project="shop",forge_step="analyze"} 1`,
		`forge_step_wait_seconds_count{forge_step="analyze"} 1`,
		`forge_attempt_duration_seconds_count{forge_outcome="ok",forge_step="analyze"} 1`,
		`go_goroutines `,
	} {
		wait.Until(t, want, func() bool { _, body := c.get("/metrics"); return strings.Contains(body, want) })
	}
}
