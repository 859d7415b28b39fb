package jobs_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestAgentsAndCommandsJoinTheTrace: programs are told the trace that they are part of, and
// verify commands are measured.
func TestAgentsAndCommandsJoinTheTrace(t *testing.T) {
	t.Parallel()
	e, err := export.Open(t.Context(), export.Config{
		Service: "implementer", Scrape: true, Spans: tracetest.NewInMemoryExporter(), Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	e.Recorder.Serves(repotest.Project)
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "verify: ['echo \"<$TRACEPARENT>\"; false']"})
	s := &scribe{}
	set := repotest.Measured(t, jobs.Source{Project: repotest.Project, Path: r.Dir}, e.Recorder, s)
	cmd := &forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepRebase}}
	run := telemetry.Run{Key: cmd.To, Number: 1}
	ctx, finish := e.Recorder.Attempt(t.Context(), run, cmd)
	var report *forge.VerifyReport
	res := set.Do(ctx, cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) (err error) {
		if report, err = j.Verify(ctx, j.Tip); err != nil {
			return err
		}
		_, err = j.Run(ctx, agent.Call{Role: agent.RoleReview})
		return err
	})
	finish(&res)
	if res.Failure() != nil || report == nil || !strings.HasPrefix(report.Output, "<00-"+run.TraceID()+"-") {
		t.Errorf("the verify command is told %+v, %+v", report, res.Failure())
	}
	told := false
	for _, kv := range s.call.Env {
		told = told || strings.HasPrefix(kv, "TRACEPARENT=00-"+run.TraceID()+"-")
	}
	if !told {
		t.Errorf("the agent is not told: %q", s.call.Env)
	}
	w := httptest.NewRecorder()
	e.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if want := `forge_verify_duration_seconds_count{forge_outcome="failed",forge_project="shop"} 1`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("there is no %s", want)
	}
}
