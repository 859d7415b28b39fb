package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/tsdb"
)

// TestRefusals: an autoscaler is told what is not there, and asks for labels by
// their names alone: nothing else becomes part of a query.
func TestRefusals(t *testing.T) {
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	app := db.Appender(t.Context())
	_, err = app.Append(0, labels.FromStrings("__name__", "forge_waiting", "namespace", "forge", "step", "implement"), time.Now().UnixMilli(), 3)
	if err = errors.Join(err, app.Commit()); err != nil {
		t.Fatal(err)
	}
	a := &adapter{
		name: "waiting", series: "forge_waiting", query: "sum(forge_waiting{<<.LabelMatchers>>})", db: db,
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 5 * time.Minute}),
	}
	for _, c := range []struct{ metric, selector, want string }{
		{"waiting", "step=implement", ""},
		{"other", "", "there is no other"},
		{"waiting", "step", `labelSelector: "step" is no label and its value`},
		{"waiting", `step!~"y"}) or vector(7) #=z`, "is no label and its value"},
	} {
		list, err := a.values(t.Context(), "forge", c.metric, c.selector)
		switch {
		case c.want == "" && (err != nil || len(list) != 1):
			t.Errorf("%s of %s: %v, %v", c.metric, c.selector, list, err)
		case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)):
			t.Errorf("%s of %s: %v, %v", c.metric, c.selector, list, err)
		}
	}
	a.series = "forge_away"
	if _, err := a.values(t.Context(), "forge", "waiting", ""); err == nil || err.Error() != "there is no waiting" {
		t.Errorf("without a series: %v", err)
	}
}
