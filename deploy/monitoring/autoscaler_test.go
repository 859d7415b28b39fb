package monitoring_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"

	"github.com/pfl-forge/pfl-forge"
)

// matchers is the place in the adapter's query where it puts what an autoscaler asks for.
const matchers = "<<.LabelMatchers>>"

// adapterQuery returns the query of the rule that serves the autoscalers their metric.
func adapterQuery(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../k8s/components/hpa/adapter.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ +metricsQuery: (.+)$`).FindAllStringSubmatch(string(data), -1)
	if len(found) != 1 || strings.Count(found[0][1], matchers) != 2 {
		t.Fatalf("%q: want one query, of both metrics with what is asked for", found)
	}
	return found[0][1]
}

// commands returns what prometheus-adapter answers an autoscaler that asks for a step: the
// autoscaler adds up all values.
func commands(t *testing.T, s storage.Storage, asked string, at time.Duration) promql.Vector {
	t.Helper()
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	q, err := engine.NewInstantQuery(t.Context(), s, nil, strings.ReplaceAll(adapterQuery(t), matchers, asked), time.Unix(0, 0).Add(at))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	vector, err := q.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return append(promql.Vector(nil), vector...)
}

// TestAutoscalerMetric: an autoscaler is told what waits and what is being worked on, once however
// many runners show it, of its own step and namespace; and nothing at all, so that nothing is
// scaled, when no runner shows anything.
func TestAutoscalerMetric(t *testing.T) {
	var load []string
	for _, one := range []struct {
		labels        string
		depth, active string
	}{
		{`forge_step="implement",namespace="forge",pod="r1"`, "9x10", "3x10"},
		{`forge_step="implement",namespace="forge",pod="r2"`, "8x10", "3x10"}, // a look earlier
		{`forge_step="review",namespace="forge",pod="r1"`, "0x10", "1x10"},
		{`forge_step="merge",namespace="forge",pod="r1"`, "0x10", "0x10"},
		{`forge_step="implement",namespace="other",pod="r1"`, "500x10", "500x10"},
		{`forge_step="judge",namespace="forge",pod="r1"`, "7x3 stale", "7x3 stale"},
	} {
		load = append(load, "forge_step_queue_depth{"+one.labels+"} "+one.depth, "forge_step_active{"+one.labels+"} "+one.active)
	}
	s := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(load, "\n  ")+"\n")
	for step, want := range map[forge.Step]float64{forge.StepImplement: 12, forge.StepReview: 1, forge.StepMerge: 0} {
		got := commands(t, s, fmt.Sprintf(`forge_step=%q,namespace="forge"`, step), 5*time.Minute)
		if len(got) != 1 || got[0].F != want || got[0].Metric.Get("forge_step") != string(step) {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}
	if got := commands(t, s, `forge_step="judge",namespace="forge"`, 10*time.Minute); len(got) != 0 {
		t.Errorf("without a runner the autoscaler is told %v", got)
	}
}
