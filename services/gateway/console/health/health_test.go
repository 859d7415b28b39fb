package health

import (
	"math"
	"net/url"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/bars"
)

// TestParseQuery: what is left out has a value, and whatever is out of range or
// given twice is named.
func TestParseQuery(t *testing.T) {
	for text, want := range map[string]Query{
		"": {8, "queue"}, "weeks=&of=&project=": {8, "queue"}, "weeks=26&of=review&project=shop": {26, "review"}, "of=merge_queue": {8, "merge_queue"},
	} {
		q, err := url.ParseQuery(text)
		if got, wrong := ParseQuery(q); err != nil || wrong != nil || got != want {
			t.Errorf("%q: %+v, %v, %v", text, got, wrong, err)
		}
	}
	for text, says := range map[string]string{
		"weeks=0": "weeks", "weeks=08": "weeks", "weeks=-4": "weeks", "weeks=99999999999999999999": "weeks", "of=attempt": "of", "of=%3Cscript%3E": "of",
		"since=x": "since", "weeks=4&weeks=8": "weeks", "of=queue&of=queue": "of",
	} {
		q, err := url.ParseQuery(text)
		if _, wrong := ParseQuery(q); err != nil || wrong == nil || !strings.Contains(wrong.Error(), says) {
			t.Errorf("%q: %v, %v", text, wrong, err)
		}
	}
}

// TestChartsStayOnTheirSheets: whatever the figures are, no bar is outside, and
// none has a place that is no number.
func TestChartsStayOnTheirSheets(t *testing.T) {
	absurd := []float64{0, 1, -1, 1e308, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), 3600}
	for _, x := range absurd {
		for _, y := range absurd {
			for _, n := range []int{0, 1, 2, 8, 26} {
				h := figures.Health{Weeks: make([]figures.HealthWeek, n)}
				for i := range h.Weeks {
					h.Weeks[i] = figures.HealthWeek{
						Week: "2026-03-02", Done: i * 7, Failed: 1 + i%3, Waits: []figures.Durations{{Key: "queue", Count: 1, P50: x, P90: y, P99: x}},
					}
				}
				p := Of(Query{8, "queue"}, "shop", &h)
				for _, c := range []Chart{p.Ends, p.Lasts} {
					for _, b := range c.Bars {
						if !(b.X >= 0 && b.Width > 0 && b.X+b.Width <= 100.001 && b.Y >= 0 && b.Height > 0 && b.Y+b.Height <= bars.Top+bars.Height+1.001) {
							t.Fatalf("%g, %g, %d weeks: %+v", x, y, n, b)
						}
					}
				}
			}
		}
	}
}

// TestPage: the newest week comes first in tables, shares are of what there
// was, and each duration leads to its chart.
func TestPage(t *testing.T) {
	h := figures.Health{
		Weeks: []figures.HealthWeek{
			{Week: "2026-03-02", Done: 3, Failed: 1, Made: 4, MadeAgain: 1, Waits: []figures.Durations{{Key: "person", Count: 2, P50: 60, P90: 90, P99: 90}}},
			{Week: "2026-03-09"},
		},
		Total: figures.HealthWeek{
			Waits: []figures.Durations{{Key: "person", Count: 2, P50: 60, P90: 90, P99: 90}}, Steps: []figures.Durations{{Key: "review", Count: 1, P50: 5}},
		},
		Checks: []figures.CheckStat{{Command: "test", Verified: 8, Flaky: 2}},
	}
	p := Of(Query{4, "person"}, "shop", &h)
	if p.Weeks[0].Week != "2026-03-09" || p.Weeks[0].Succeeded() != "" || p.Weeks[1].Succeeded() != "75%" || p.Weeks[1].Again() != "25%" {
		t.Errorf("%+v", p.Weeks)
	}
	if len(p.Ends.Bars) != 2 || len(p.Lasts.Bars) != 3 || p.Lasts.Highest != "1 min 30 s" || p.Title() != "How long a person was waited for" {
		t.Errorf("%+v, %+v", p.Ends, p.Lasts)
	}
	if w := p.Waits[0]; !w.To.Here || w.Name != "a person" || p.Steps[0].To.Here || p.Steps[0].To.Values.Encode() != "of=review&project=shop&weeks=4" {
		t.Errorf("%+v, %+v", p.Waits, p.Steps)
	}
	if Flaky(p.Checks[0]) != "25%" || Flaky(figures.CheckStat{}) != "" {
		t.Errorf("flaky is %s", Flaky(p.Checks[0]))
	}
}
