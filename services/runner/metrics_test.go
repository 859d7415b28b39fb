package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// observed runs a runner until the test ends, and returns a function that scrapes it: the
// values of the metrics, by name and labels as Prometheus writes them.
func observed(t *testing.T, b *bus.Bus) (scrape func() map[string]float64) {
	t.Helper()
	e, err := export.Open(t.Context(), export.Config{
		Service: "runner", Scrape: true, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{
			Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }, Metrics: e.Recorder, ObserveEvery: 50 * time.Millisecond,
		})
	})
	<-ready
	return func() map[string]float64 {
		w := httptest.NewRecorder()
		e.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/metrics", http.NoBody))
		values := map[string]float64{}
		for _, m := range regexp.MustCompile(`(?m)^((?:forge|gen_ai)\S*(?:\{.*\})?) (\S+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
			v, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				t.Fatal(m[0], err)
			}
			values[m[1]] = v
		}
		return values
	}
}

// announced makes a worker known that serves the project, until the test ends.
func announced(t *testing.T, b *bus.Bus) {
	t.Helper()
	stop, err := b.Presence.Announce(t.Context(), presence.Replica{
		Service: "reviewer", ID: "r1", Version: "v", Started: time.Now(), Projects: []forge.ProjectID{project},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

// TestTwoRunnersShowTheSame: the state of the installation is the same at both, and what
// each did itself adds up to what was done.
func TestTwoRunnersShowTheSame(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if err := b.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	announced(t, b)
	scrapes := []func() map[string]float64{observed(t, s.Connect(t)), observed(t, s.Connect(t))}
	const n = 20
	var ids []forge.IntentID
	for i := range n {
		ids = append(ids, forge.IntentID(fmt.Sprintf("intent-%d", i)))
		if _, err := b.Submissions.Ask(t.Context(), submission(ids[i])); err != nil {
			t.Fatal(err)
		}
	}
	junk := submission("junk")
	junk.To.Project = "made-up"
	forge.As[*forge.Submit](junk.Message).Intent.Project = "made-up"
	if _, err := b.Submissions.Ask(t.Context(), junk); err != nil {
		t.Fatal(err)
	}
	proposed := fmt.Sprintf(`forge_intents{forge_intent_status="proposed",forge_project=%q}`, project)
	for _, scrape := range scrapes { // and so know the project
		wait.Until(t, "all intents are shown", func() bool { return scrape()[proposed] == n })
	}
	startWorkers(t, b, func(c forge.Command) forge.Result {
		r := succeed(c)
		if c.Attempt.Step == forge.StepImplement {
			r.Agent, r.Model, r.Usage = "claude", "sonnet", forge.Usage{CostUSD: 0.25, InputTokens: 100}
		}
		return r
	})
	await(t, b, forge.StatusDone, ids...)
	done := fmt.Sprintf(`forge_intents{forge_intent_status="done",forge_project=%q}`, project)
	merged := fmt.Sprintf(`forge_merges_total{forge_merge_outcome="merged",forge_project=%q}`, project)
	cost := fmt.Sprintf(`forge_agent_cost_total{forge_agent="claude",forge_project=%q,forge_step="implement",gen_ai_request_model="sonnet"}`, project)
	for _, scrape := range scrapes {
		wait.Until(t, "all intents are shown as done", func() bool {
			v := scrape()
			return v[done] == n && v[`forge_intents{forge_intent_status="done",forge_project="other"}`] == 1
		})
	}
	sum := map[string]float64{}
	for _, scrape := range scrapes {
		for name, v := range scrape() {
			sum[name] += v
			if strings.Contains(name, "made-up") {
				t.Errorf("a project that nobody serves is shown: %s", name)
			}
		}
	}
	// A result that comes again after a lost answer may be counted by neither, but never twice.
	if sum[merged] != n || sum[cost] != n*0.25 {
		t.Errorf("%v merges, %v dollars", sum[merged], sum[cost])
	}
	if sum[done] != 2*n {
		t.Errorf("%v intents are shown as done, at both together", sum[done])
	}
	if sum[`forge_journal_append_duration_seconds_count{forge_outcome="ok"}`] < n || sum[`forge_decisions_total{forge_decision="applied"}`] < n {
		t.Errorf("the journal is not measured: %v", sum)
	}
}

// TestQueuesAreShown: commands that nobody takes, and one that is under way.
func TestQueuesAreShown(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	scrape := observed(t, b)
	for i := range 3 {
		if _, err := b.Submissions.Ask(t.Context(), submission(forge.IntentID(fmt.Sprintf("intent-%d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	const depth, active = `forge_step_queue_depth{forge_step="analyze"}`, `forge_step_active{forge_step="analyze"}`
	wait.Until(t, "three wait", func() bool { v := scrape(); return v[depth] == 3 && v[active] == 0 })
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error {
		return b.Commands.Consume(ctx, work.Config{Step: forge.StepAnalyze, Replica: "r1"}, func(ctx context.Context, _ *work.Job) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, "one is under way", func() bool { v := scrape(); return v[depth] == 2 && v[active] == 1 })
	if v := scrape(); v["forge_dead_letters"] != 0 || v[`forge_step_queue_depth{forge_step="review"}`] != 0 {
		t.Errorf("got %v", v)
	}
}
