package monitoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

const component = "../k8s/components/monitoring/"

// alerts returns the rules of the component, as Prometheus reads them.
func alerts(t *testing.T) []rulefmt.Rule {
	t.Helper()
	data, err := os.ReadFile(component + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The groups of a PrometheusRule are those of a rule file, below spec.
	_, spec, ok := strings.Cut(string(data), "\nspec:\n")
	if !ok {
		t.Fatal("alerts.yaml has no spec")
	}
	groups, errs := rulefmt.Parse([]byte(regexp.MustCompile(`(?m)^  `).ReplaceAllString(spec, "")), false, model.LegacyValidation,
		parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var list []rulefmt.Rule
	for _, g := range groups.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// firing evaluates a rule each minute of a stored world, and returns the labels of the
// alerts that fire in the last one.
func firing(t *testing.T, s storage.Storage, r rulefmt.Rule, minutes int) []string {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
	if err != nil {
		t.Fatal(r.Alert, err)
	}
	rule := rules.NewAlertingRule(r.Alert, expr, time.Duration(r.For), 0, labels.FromMap(r.Labels), labels.FromMap(r.Annotations),
		labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000), s)
	for m := range minutes + 1 {
		at := time.Unix(0, 0).Add(time.Duration(m) * time.Minute)
		if _, err := rule.Eval(context.Background(), 0, at, query, nil, 0); err != nil {
			t.Fatal(r.Alert, err)
		}
	}
	var list []string
	for _, a := range rule.ActiveAlerts() {
		if a.State == rules.StateFiring {
			list = append(list, a.Annotations.Get("summary"))
		}
	}
	return list
}

// quiet is a world in which all is well: two runners show the same, and count their own.
const quiet = `
forge_step_queue_depth{forge_step="implement",instance="r1"} 2x240
forge_step_queue_depth{forge_step="implement",instance="r2"} 2x240
forge_step_active{forge_step="implement",instance="r1"} 1x240
forge_step_active{forge_step="implement",instance="r2"} 1x240
forge_intent_oldest_age_seconds{forge_project="shop",forge_waits_for="system",instance="r1"} 12000x240
forge_intent_oldest_age_seconds{forge_project="shop",forge_waits_for="system",instance="r2"} 12000x240
forge_intent_oldest_age_seconds{forge_project="shop",forge_waits_for="person",instance="r1"} 80000x240
forge_step_wait_seconds_bucket{forge_step="implement",le="60",instance="w1"} 0+10x240
forge_step_wait_seconds_bucket{forge_step="implement",le="+Inf",instance="w1"} 0+10x240
forge_attempts_total{forge_project="shop",forge_step="implement",forge_outcome="ok",error_type=""} 0+2x240
forge_attempts_total{forge_project="shop",forge_step="implement",forge_outcome="failed",error_type="timeout"} 0+1x240
forge_attempts_total{forge_project="shop",forge_step="implement",forge_outcome="failed",error_type="auth"} 3x240
forge_attempts_total{forge_project="shop",forge_step="review",forge_outcome="failed",error_type="rate_limited"} 0x60 1x180
forge_merge_queue_length{forge_project="shop",instance="r1"} 2x240
forge_merge_queue_length{forge_project="shop",instance="r2"} 2x240
forge_merges_total{forge_project="shop",forge_merge_outcome="merged",instance="r1"} 0+1x240
forge_project_facts{forge_project="shop",forge_fact="origin",instance="r1"} 0x100 1x20 0x120
forge_project_facts{forge_project="shop",forge_fact="push_refused",instance="r1"} 0x240
forge_service_unready{forge_check="state",instance="w1"} 0x100 1x5 0x135
forge_service_unready{forge_check="state",instance="w2"} 0x240
forge_budget_remaining{forge_project="shop",forge_budget_scope="day",instance="r1"} 5x240
forge_dead_letters{instance="r1"} 3x240
forge_dead_letters{instance="r2"} 3x240
forge_nats_copies_missing{instance="r1"} 0x100 3x5 0x135
forge_leases_lost_total{forge_step="implement",instance="w1"} 1x240
forge_pods_lost_total{forge_pod_loss="evicted",instance="w1"} 1x240
forge_pods_refused_total{forge_pod_refusal="quota",instance="w1"} 5x240
forge_reads_refused_total{forge_read_refusal="busy",instance="r1"} 5x240
forge_submissions_over_quota_total{forge_project="shop",forge_quota="quota.system",instance="r1"} 7x240
forge_journal_append_duration_seconds_bucket{forge_outcome="ok",le="0.01",instance="r1"} 0+60x240
forge_journal_append_duration_seconds_bucket{forge_outcome="ok",le="+Inf",instance="r1"} 0+60x240
forge_journal_append_duration_seconds_count{forge_outcome="error",instance="r1"} 1x240
forge_redeliveries_total{forge_message_kind="event",instance="r1"} 0+1x240
http_server_request_duration_seconds_count{http_route="/api/v1",http_response_status_code="201",instance="g1"} 0+10x240
http_server_request_duration_seconds_count{http_route="/api/v1",http_response_status_code="503",instance="g1"} 3x240
http_server_request_duration_seconds_count{http_route="other",http_response_status_code="503",instance="g1"} 0+90x240
http_server_request_duration_seconds_count{http_route="/hooks/{name}",http_response_status_code="202",instance="g1"} 0+5x240
http_server_request_duration_seconds_count{http_route="/hooks/{name}",http_response_status_code="401",instance="g1"} 9x240
forge_build_info_ratio{vcs_ref_head_revision="a",instance="r1"} 1x240
forge_build_info_ratio{vcs_ref_head_revision="a",instance="r2"} 1x240
`

// worlds has, for each alert, the series by which a world in which it has to fire differs
// from the quiet one.
var worlds = map[string]string{
	"ForgeRunnerMissing": `forge_step_queue_depth{forge_step="implement",instance="r1"} 2x230 stale
forge_step_queue_depth{forge_step="implement",instance="r2"} 2x230 stale`,
	"ForgeIntentStuck": `forge_intent_oldest_age_seconds{forge_project="shop",forge_waits_for="system",instance="r1"} 12000+60x240`,
	"ForgeInboxOld":    `forge_intent_oldest_age_seconds{forge_project="shop",forge_waits_for="person",instance="r1"} 80000+60x240`,
	"ForgeStepNotTaken": `forge_step_active{forge_step="implement",instance="r1"} 1x220 0x20
forge_step_active{forge_step="implement",instance="r2"} 1x220 0x20`,
	"ForgeStepWaits": `forge_step_wait_seconds_bucket{forge_step="implement",le="3600",instance="w1"} 0+20x240
forge_step_wait_seconds_bucket{forge_step="implement",le="+Inf",instance="w1"} 0+20x240`,
	"ForgeAttemptsFail":      `forge_attempts_total{forge_project="shop",forge_step="implement",forge_outcome="failed",error_type="timeout"} 0+3x240`,
	"ForgeSetupBroken":       `forge_attempts_total{forge_project="shop",forge_step="implement",forge_outcome="failed",error_type="auth"} 3x230 4x10`,
	"ForgeModelLimited":      `forge_attempts_total{forge_project="shop",forge_step="review",forge_outcome="failed",error_type="rate_limited"} 0+1x240`,
	"ForgeMergesStandStill":  `forge_merges_total{forge_project="shop",forge_merge_outcome="merged",instance="r1"} 0+1x120 120x120`,
	"ForgeProjectHeld":       `forge_project_facts{forge_project="shop",forge_fact="push_refused",instance="r1"} 0x200 1x40`,
	"ForgeServiceUnready":    `forge_service_unready{forge_check="state",instance="w1"} 0x220 1x20`,
	"ForgeBudgetUsedUp":      `forge_budget_remaining{forge_project="shop",forge_budget_scope="day",instance="r1"} 5x239 0.5`,
	"ForgeDeadLetters":       `forge_dead_letters{instance="r1"} 3x230 4x10`,
	"ForgeNATSCopiesMissing": `forge_nats_copies_missing{instance="r1"} 0x220 3x20`,
	"ForgeLeasesLost":        `forge_leases_lost_total{forge_step="implement",instance="w1"} 1x230 6x10`,
	"ForgePodsLost":          `forge_pods_lost_total{forge_pod_loss="evicted",instance="w1"} 1x230 6x10`,
	"ForgePodsRefused":       `forge_pods_refused_total{forge_pod_refusal="quota",instance="w1"} 5+1x240`,
	"ForgeReadsRefused":      `forge_reads_refused_total{forge_read_refusal="busy",instance="r1"} 0+20x240`,
	"ForgeQuotaReached":      `forge_submissions_over_quota_total{forge_project="shop",forge_quota="quota.system",instance="r1"} 7+2x240`,
	"ForgeGatewayFails":      `http_server_request_duration_seconds_count{http_route="/api/v1",http_response_status_code="503",instance="g1"} 0+4x240`,
	"ForgeHookRefused":       `http_server_request_duration_seconds_count{http_route="/hooks/{name}",http_response_status_code="401",instance="g1"} 9+1x240`,
	"ForgeJournalSlow": `forge_journal_append_duration_seconds_bucket{forge_outcome="ok",le="2.5",instance="r1"} 0+90x240
forge_journal_append_duration_seconds_bucket{forge_outcome="ok",le="+Inf",instance="r1"} 0+90x240`,
	"ForgeJournalFails":   `forge_journal_append_duration_seconds_count{forge_outcome="error",instance="r1"} 0+1x240`,
	"ForgeRedeliveries":   `forge_redeliveries_total{forge_message_kind="event",instance="r1"} 0+120x240`,
	"ForgeVersionsDiffer": `forge_build_info_ratio{vcs_ref_head_revision="b",instance="r2"} 1x240`,
}

// world returns the quiet world with the series of another one in place of its own.
func world(t *testing.T, changed string) storage.Storage {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(quiet), "\n")
	for line := range strings.SplitSeq(changed, "\n") {
		series, _, _ := strings.Cut(line, " ")
		found := false
		for i := range lines {
			if strings.HasPrefix(lines[i], series+" ") {
				lines[i], found = line, true
			}
		}
		if !found && line != "" {
			lines = append(lines, line)
		}
	}
	return promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(lines, "\n  ")+"\n")
}

// TestAlerts: each alert fires in its world, and none does where all is well. The guide has a
// line for each.
func TestAlerts(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide-kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	well := world(t, "")
	known := map[string]bool{}
	for _, r := range alerts(t) {
		known[r.Alert] = true
		if got := firing(t, well, r, 240); len(got) > 0 {
			t.Errorf("%s fires where all is well: %q", r.Alert, got)
		}
		changed, ok := worlds[r.Alert]
		if !ok {
			t.Errorf("%s is tried in no world", r.Alert)
			continue
		}
		got := firing(t, world(t, changed), r, 240)
		if len(got) != 1 {
			t.Errorf("%s does not fire once: %q", r.Alert, got)
		} else if strings.Contains(got[0], "<no value>") || strings.Contains(got[0], "{{") {
			t.Errorf("%s says %q", r.Alert, got[0])
		}
		line := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\| %s \\| .+ \\| .{20,} \\|$", r.Alert, r.Labels["severity"]))
		if !line.Match(guide) {
			t.Errorf("the guide has no line for %s (%s)", r.Alert, r.Labels["severity"])
		}
	}
	for name := range worlds {
		if !known[name] {
			t.Errorf("there is no alert %s", name)
		}
	}
}

// TestFirstFailure: what no retry mends is told of at its first failure, with which the series
// of its replica begins: increase sees none of that. It is over a quarter of an hour later.
func TestFirstFailure(t *testing.T) {
	const series = `forge_attempts_total{forge_project="shop",forge_step="review",forge_outcome="failed",error_type=%q,instance="w9"} `
	for _, r := range alerts(t) {
		if r.Alert != "ForgeSetupBroken" {
			continue
		}
		for _, reason := range []string{"auth", "missing_cli", "cli_too_old", "sandbox"} {
			one := fmt.Sprintf(series, reason)
			if got := firing(t, world(t, one+"_x230 1x10"), r, 240); len(got) != 1 || !strings.Contains(got[0], reason) {
				t.Errorf("the first failure by %s: %q", reason, got)
			}
			if got := firing(t, world(t, one+"_x200 1x40"), r, 240); len(got) != 0 {
				t.Errorf("half an hour after the only failure by %s: %q", reason, got)
			}
		}
	}
}

// queries returns the dashboard's queries by the titles of their panels.
func queries(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(component + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all[p.Title] = strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
		}
	}
	if len(all) == 0 || len(all) != len(board.Panels) {
		t.Fatalf("%d queries in %d panels", len(all), len(board.Panels))
	}
	return all
}

// unknown reports the values that a query asks an attribute for and that it
// never has. Of regular expressions those that list values are looked at.
func unknown(t *testing.T, query string, a *telemetry.Attribute, m *labels.Matcher) {
	t.Helper()
	values := []string{m.Value}
	if m.Type == labels.MatchRegexp || m.Type == labels.MatchNotRegexp {
		values = m.SetMatches()
	}
	for _, v := range values {
		if a.Values != nil && v != telemetry.Other && !slices.Contains(a.Values, v) {
			t.Errorf("%s asks for %s %q, which is none of %q", query, a.Key, v, a.Values)
		}
	}
}

// TestQueriesNameWhatThereIs: a query over a metric, a label or a value that nobody exposes shows
// nothing, for ever, and nobody notices. Gauges of the whole are not added up over runners.
func TestQueriesNameWhatThereIs(t *testing.T) {
	byName := map[string]*telemetry.Instrument{}
	for _, i := range telemetry.Instruments() {
		byName[i.Prometheus()] = i
	}
	all := queries(t)
	for _, r := range alerts(t) {
		all[r.Alert] = r.Expr
	}
	all["the autoscalers' rule"] = strings.ReplaceAll(adapterQuery(t), matchers, "")
	used := map[string]bool{}
	for name, query := range all {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			base := v.Name
			if byName[base] == nil {
				base = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(base, "")
			}
			i := byName[base]
			if i == nil {
				t.Errorf("%s asks for %s", name, v.Name)
				return nil
			}
			used[base] = true
			for _, m := range v.LabelMatchers {
				has := m.Name == model.MetricNameLabel || m.Name == "le"
				for _, a := range i.Attributes {
					if strings.ReplaceAll(a.Key, ".", "_") == m.Name {
						has = true
						unknown(t, name, a, m)
					}
				}
				if !has {
					t.Errorf("%s asks %s for %s", name, v.Name, m.Name)
				}
			}
			if i.Across == telemetry.Max && !strings.HasPrefix(query, "max") && !strings.HasPrefix(query, "absent") {
				t.Errorf("%s adds up what each runner shows: %s", name, query)
			}
			return nil
		})
	}
	for name := range byName {
		if !used[name] {
			t.Errorf("%s is in no alert and no panel", name)
		}
	}
}
