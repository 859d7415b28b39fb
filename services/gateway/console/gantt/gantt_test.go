package gantt

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns a time some minutes after noon.
func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// TestRows: an attempt is one row with the wait before it, and a long wait for
// a person leaves room for the rest.
func TestRows(t *testing.T) {
	c := Of([]document.Span{
		{Kind: document.SpanQueue, Step: "implement", Attempt: 1, From: at(0), To: at(1)},
		{Kind: document.SpanAttempt, Step: "implement", Attempt: 1, From: at(1), To: at(4), Outcome: "ok"},
		{Kind: document.SpanPerson, From: at(4), To: at(10_000)},
		{Kind: document.SpanAttempt, Step: "review", Attempt: 1, From: at(10_000)},
	}, at(0), at(10_004))
	if len(c.Rows) != 3 || !c.Shortened {
		t.Fatalf("%+v", c)
	}
	first, person, last := c.Rows[0], c.Rows[1], c.Rows[2]
	if len(first.Bars) != 2 || first.Waited != time.Minute || first.Took != 3*time.Minute || first.Last.Outcome != "ok" || first.Open {
		t.Errorf("the attempt: %+v", first)
	}
	if b := person.Bars[0]; b.Width > 15 || person.Took != 9996*time.Minute {
		t.Errorf("the person: %+v", person)
	}
	if b := last.Bars[0]; !last.Open || last.Took != 4*time.Minute || b.X+b.Width < 99.9 || b.Width < 40 {
		t.Errorf("what goes on: %+v", last)
	}
}

// TestBarsStayOnTheAxis: whatever the times are, each bar can be seen, and none is outside.
func TestBarsStayOnTheAxis(t *testing.T) {
	times := []time.Time{{}, at(-100), at(0), at(5), at(5), at(10), at(100), at(1 << 20)}
	for _, from := range times {
		for _, to := range times {
			for _, kind := range document.SpanKinds() {
				c := Of([]document.Span{{Kind: kind, From: from, To: to}, {Kind: document.SpanAttempt, From: at(5), To: at(5)}}, at(0), at(10))
				for _, r := range c.Rows {
					for _, b := range r.Bars {
						if b.X < 0 || b.Width < thinnest || b.X+b.Width > 100.001 || r.Took < 0 || r.Waited < 0 {
							t.Fatalf("%v to %v: %+v", from, to, b)
						}
					}
				}
			}
		}
	}
	if c := Of(nil, at(0), at(0)); len(c.Rows) > 0 {
		t.Errorf("%+v", c)
	}
	if c := Of([]document.Span{{Kind: document.SpanQueue, From: at(0)}}, at(0), at(0)); len(c.Rows) != 1 || c.Rows[0].Bars[0].Width < thinnest {
		t.Errorf("of no time: %+v", c)
	}
}
