package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestAnswers: an autoscaler is told what a runner shows of the step that it
// asks for, in its namespace.
func TestAnswers(t *testing.T) {
	runner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, step := range []string{"implement", "review"} {
			fmt.Fprintf(w, "forge_step_queue_depth{forge_step=%[1]q} %[2]d\nforge_step_active{forge_step=%[1]q} 3\n", step, len(step))
		}
	}))
	defer runner.Close()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &adapter{db: db, engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})}
	if err := a.read("../../k8s/components/hpa/adapter.yaml"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.scrape(ctx, "forge", strings.TrimPrefix(runner.URL, "http://")) }()
	defer func() {
		cancel()
		if err := wait.For(t, ended); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	said := func(namespace, metric string) string {
		items, err := a.values(ctx, namespace, metric, "forge_step=implement")
		return fmt.Sprint(items, err)
	}
	wait.Until(t, "the metric is there", func() bool { return strings.Contains(said("forge", "forge_step_commands"), "value:12") })
	if got := said("other", "forge_step_commands"); got != "[] <nil>" {
		t.Errorf("of another namespace it says %s", got)
	}
	if got := said("forge", "other"); !strings.Contains(got, "there is no other") {
		t.Errorf("of another metric it says %s", got)
	}
}
