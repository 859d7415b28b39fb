package export_test

import (
	"context"
	"flag"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	dto "github.com/prometheus/client_model/go"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of docs/metrics.md anew")

// open returns an export for Prometheus.
func open(t *testing.T) *export.Export {
	t.Helper()
	e, err := export.Open(t.Context(), export.Config{
		Service: "runner", Replica: "r1", Version: "v1", Scrape: true,
		Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// read returns what Prometheus would, without what is not ours.
func read(t *testing.T, e *export.Export) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	e.Metrics.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for name := range all {
		if !strings.HasPrefix(name, "forge_") && !strings.HasPrefix(name, "gen_ai_") && !strings.HasPrefix(name, "http_server_") {
			delete(all, name)
		}
	}
	return all
}

// labels returns the labels of a metric as text.
func labels(m *dto.Metric) string {
	var parts []string
	for _, l := range m.GetLabel() {
		parts = append(parts, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(parts, " ")
}

// find returns the metric with these labels.
func find(t *testing.T, all map[string]*dto.MetricFamily, name, with string) *dto.Metric {
	t.Helper()
	for _, m := range all[name].GetMetric() {
		if labels(m) == with {
			return m
		}
	}
	var there []string
	for _, m := range all[name].GetMetric() {
		there = append(there, labels(m))
	}
	t.Fatalf("%s has no {%s}, but %q", name, with, there)
	return nil
}

// record lets everything happen once.
func record(t *testing.T, e *export.Export) {
	t.Helper()
	r := e.Recorder
	r.Serves("shop")
	key := forge.Key{Project: "shop", Intent: "fix"}
	result := &forge.Result{
		To: key, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1, Claim: 1}, Duration: 90 * time.Second,
		Agent: "claude", Model: "sonnet-5", Usage: forge.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 30, CacheWriteTokens: 40, CostUSD: 0.5},
		Output: &forge.Implementation{},
	}
	merge := &forge.Result{
		To: key, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepMerge, Number: 1, Claim: 1},
		Output: &forge.MergeResult{Outcome: forge.MergeDone},
	}
	for _, res := range []*forge.Result{result, merge} {
		r.Decided(&forge.Event{To: key, Message: res}, forge.Applied)
		r.AttemptEnded(res, false)
	}
	r.Decided(&forge.Event{To: key, Message: result}, forge.Ignored) // told twice
	r.Journaled(2*time.Millisecond, nil, false)
	r.AttemptBegan(&forge.Command{To: key, Attempt: result.Attempt}, 3*time.Second)
	r.LeaseLost(forge.StepImplement)
	r.Redelivered(telemetry.KindEvent)
	r.ReadRefused("busy")
	r.Watch(func(context.Context) []string { return []string{"state"} })
	r.OverQuota("shop", quota.OfSystem)
	r.Answered("POST", "POST /hooks/{name}", 202, time.Millisecond)
	r.Pod()
	r.PodStarted(2 * time.Second)
	r.PodLost(telemetry.PodEvicted)
	r.PodRefused(telemetry.PodQuota)
	r.Verified("shop", time.Second, &forge.VerifyReport{}, nil)
	now := time.Now()
	snapshot := r.NewSnapshot()
	snapshot.Intent("shop", forge.StatusExecuting, "", now.Add(-time.Hour))
	snapshot.Intent("shop", forge.StatusDone, "", now.Add(-100*time.Hour))
	snapshot.Intent("shop", forge.StatusProposed, forge.WaitingApproval, now.Add(-2*time.Hour))
	snapshot.Intent("junk", forge.StatusProposed, "", now)
	snapshot.Project("shop", &forge.ProjectSummary{
		Merges: 3, Limits: forge.Budget{ProjectUSD: 10, DayUSD: 5}, SpentUSD: 4, TodayUSD: 9, Day: now.Unix() / 86400,
		Closed: []forge.Obstacle{
			{Agent: forge.GitPush, Reason: forge.FailPush}, {Agent: "claude", Reason: forge.FailQuota, Until: now.Add(-time.Second)},
		},
	})
	snapshot.Project("old", nil)
	snapshot.Queue(forge.StepReview, 5, 1)
	snapshot.Queue(forge.StepReview, 2, 1) // of a replica
	snapshot.DeadLetters(1)
	snapshot.MissingCopies(2)
	r.Show(snapshot)
}

// Every row of the table is exported under its name, and nothing else is.
func TestEveryMetric(t *testing.T) {
	e := open(t)
	record(t, e)
	all := read(t, e)
	for _, i := range telemetry.Instruments() {
		if all[i.Prometheus()] == nil {
			t.Errorf("%s is not exported as %s", i.Name, i.Prometheus())
		}
		delete(all, i.Prometheus())
	}
	for name := range all {
		t.Errorf("%s is not in the table", name)
	}
}

func TestValues(t *testing.T) {
	e := open(t)
	record(t, e)
	all := read(t, e)
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"forge_intents", "forge_intent_status=executing forge_project=shop", 1},
		{"forge_intents", "forge_intent_status=error forge_project=shop", 0},
		{"forge_intents", "forge_intent_status=proposed forge_project=other", 1},
		{"forge_intents_waiting", "forge_project=shop forge_waiting=approval", 1},
		{"forge_service_unready", "forge_check=state", 1},
		{"forge_service_unready", "forge_check=nats", 0},
		{"forge_step_queue_depth", "forge_step=review", 7},
		{"forge_step_active", "forge_step=review", 2},
		{"forge_merge_queue_length", "forge_project=shop", 3},
		{"forge_project_facts", "forge_fact=push_refused forge_project=shop", 1},
		{"forge_project_facts", "forge_fact=quota forge_project=shop", 0},
		{"forge_project_facts", "forge_fact=auth forge_project=other", 0},
		{"forge_budget_remaining", "forge_budget_scope=project forge_project=shop", 6},
		{"forge_budget_remaining", "forge_budget_scope=day forge_project=shop", 0},
		{"forge_dead_letters", "", 1},
		{"forge_nats_copies_missing", "", 2},
		{"forge_pods_active", "", 1},
	} {
		if got := find(t, all, c.name, c.labels).GetGauge().GetValue(); got != c.want {
			t.Errorf("%s{%s} is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	for who, want := range map[string]float64{"system": 3600, "person": 7200} {
		got := find(t, all, "forge_intent_oldest_age_seconds", "forge_project=shop forge_waits_for="+who).GetGauge().GetValue()
		if got < want-1 || got > want+1 {
			t.Errorf("the oldest of %s is %v, want %v", who, got, want)
		}
	}
	for _, c := range []struct {
		name, labels string
		want         float64
	}{
		{"forge_decisions_total", "forge_decision=applied", 2},
		{"forge_merges_total", "forge_merge_outcome=merged forge_project=shop", 1},
		{"forge_agent_cost_total", "forge_agent=claude forge_project=shop forge_step=implement gen_ai_request_model=sonnet-5", 0.5},
		{"forge_attempts_total", "error_type= forge_outcome=ok forge_project=shop forge_step=implement", 1},
		{"forge_leases_lost_total", "forge_step=implement", 1},
		{"forge_redeliveries_total", "forge_message_kind=event", 1},
	} {
		if got := find(t, all, c.name, c.labels).GetCounter().GetValue(); got != c.want {
			t.Errorf("%s{%s} is %v, want %v", c.name, c.labels, got, c.want)
		}
	}
	usage := find(t, all, "gen_ai_client_token_usage", "forge_agent=claude forge_project=shop forge_step=implement "+
		"gen_ai_operation_name=invoke_agent gen_ai_provider_name=anthropic gen_ai_request_model=sonnet-5 gen_ai_token_type=cache_read")
	if got := usage.GetHistogram(); got.GetSampleSum() != 30 || got.GetSampleCount() != 1 {
		t.Errorf("tokens: %v", got)
	}
}

// What was read long ago is not shown as if it were true.
func TestOldSnapshotsAreNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		snapshot := e.Recorder.NewSnapshot()
		snapshot.DeadLetters(1)
		e.Recorder.Show(snapshot)
		<-wait.Briefly(t, 59*time.Second).Done()
		if all := read(t, e); all["forge_dead_letters"] == nil || len(all["forge_step_queue_depth"].GetMetric()) != len(forge.Steps()) {
			t.Errorf("got %v", all)
		}
		<-wait.Briefly(t, 2*time.Second).Done()
		if all := read(t, e); all["forge_dead_letters"] != nil || all["forge_step_queue_depth"] != nil || all["forge_build_info_ratio"] == nil {
			t.Errorf("got %v", all)
		}
	})
}

// A worker may report numbers that no agent ever used.
func TestNumbersThatAreMadeUp(t *testing.T) {
	e := open(t)
	for _, usd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -5, 2} {
		res := &forge.Result{
			To: forge.Key{Project: "shop", Intent: "a"}, Attempt: forge.Attempt{Step: forge.StepReview}, Agent: "claude", Model: "m", Duration: -time.Hour,
			Usage: forge.Usage{CostUSD: usd, InputTokens: -7}, Output: &forge.Review{},
		}
		e.Recorder.Decided(&forge.Event{To: res.To, Message: res}, forge.Applied)
		e.Recorder.AttemptEnded(res, false)
	}
	all := read(t, e)
	sum := all["forge_agent_cost_total"].GetMetric()
	if len(sum) != 1 || sum[0].GetCounter().GetValue() != 2 {
		t.Errorf("cost: %v", sum)
	}
	if all["gen_ai_client_token_usage"] != nil || all["forge_attempt_duration_seconds"] != nil {
		t.Errorf("negative values are recorded: %v", all)
	}
}

// Nothing is sent, and nothing is listened for, unless a setting asks for it.
func TestNothingUnlessAskedFor(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		scrape bool
		want   bool
	}{
		{nil, false, false},
		{nil, true, true},
		{map[string]string{"OTEL_SERVICE_NAME": "x"}, false, false},
		{map[string]string{"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, false, false},
		{map[string]string{"OTEL_METRICS_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}, false, false},
	} {
		e, err := export.Open(context.Background(), export.Config{
			Service: "runner", Scrape: c.scrape, Getenv: func(k string) string { return c.env[k] }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		if (e.Recorder != nil) != c.want || (e.Metrics != nil) != c.scrape {
			t.Errorf("%v, scrape %v: %+v", c.env, c.scrape, e)
		}
		e.Recorder.Serves("shop") // a nil Recorder is fine
		e.Recorder.Redelivered(telemetry.KindEvent)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The page for operators has exactly the table of the code.
func TestDocumented(t *testing.T) {
	const name = "../../../docs/metrics.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- made by go test ./internal/telemetry/export -rewrite -->\n", "<!-- end of what is made -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has lost its marks")
	}
	want := before + begin + "\n" + telemetry.Tables() + "\n" + end + after
	if *rewrite {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(page) {
		t.Error("docs/metrics.md is not what the code says: go test ./internal/telemetry/export -rewrite")
	}
}
