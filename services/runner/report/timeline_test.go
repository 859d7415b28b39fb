package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// at returns a time some seconds after noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// analyzed is a result of the analysis, whose worker says when it began and how long it took.
func analyzed(claim int, began time.Time, took time.Duration, out forge.Output) *forge.Result {
	return &forge.Result{
		To: key, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: claim}, Replica: "one", StartedAt: began, Duration: took, Output: out,
	}
}

// told returns spans as lines.
func told(list []document.Span) (lines []string) {
	for _, s := range list {
		end := "open"
		if !s.To.IsZero() {
			end = fmt.Sprint(s.To.Sub(noon).Seconds())
		}
		lines = append(lines, fmt.Sprintf("%s %s %d.%d %v-%s %s", s.Kind, s.Step, s.Attempt, s.Claim, s.From.Sub(noon).Seconds(), end, s.Outcome))
	}
	return lines
}

var submitted = &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "One", Body: "Do it."}, Source: forge.SourceHuman}}

// TestTimeline: an attempt waits in a queue until its worker began it, and a
// person is waited for until they decide.
func TestTimeline(t *testing.T) {
	plan := &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	records := journalOf(t, // a minute apart
		submitted, &forge.RunAdmitted{Run: 1},
		analyzed(1, at(70), 30*time.Second, plan),
	)
	got := Timeline(key, records)
	want := []string{"queue analyze 1.1 60-70 ", "attempt analyze 1.1 70-100 ok", "person  0.0 120-open "}
	if lines := told(got.Spans); !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	running := slices.Concat(records[:2], []forge.Record{{Events: []forge.Event{
		{ID: "s", To: key, At: at(80), Message: analyzed(1, at(70), 0, &forge.Started{})},
	}}})
	if lines := told(Timeline(key, running).Spans); !slices.Equal(lines, []string{want[0], "attempt analyze 1.1 70-open "}) {
		t.Errorf("of one that runs: %v", lines)
	}
	if len(got.Records) != 3 || got.Records[2].Number != 3 || got.Title != "One" || len(got.TraceID) != 32 {
		t.Errorf("%+v", got)
	}
}

// TestTimelineOfLiars: a worker's clock puts nothing before the command or after
// the answer, and a worker whose claim was given to another one adds nothing.
func TestTimelineOfLiars(t *testing.T) {
	for name, r := range map[string]*forge.Result{
		"before it was asked": analyzed(1, noon.AddDate(-1, 0, 0), time.Minute, &forge.Failure{Reason: forge.FailCrashed}),
		"in the future":       analyzed(1, noon.AddDate(9000, 0, 0), time.Minute, &forge.Failure{Reason: forge.FailCrashed}),
		"for ever":            analyzed(1, at(70), 1<<62, &forge.Failure{Reason: forge.FailCrashed}),
		"backwards":           analyzed(1, at(70), -time.Hour, &forge.Failure{Reason: forge.FailCrashed}),
		"never":               analyzed(1, time.Time{}, 0, &forge.Failure{Reason: forge.FailCrashed}),
	} {
		for _, s := range Timeline(key, journalOf(t, submitted, &forge.RunAdmitted{Run: 1}, r)).Spans {
			if s.From.Before(at(60)) || s.From.After(at(120)) || !s.To.IsZero() && (s.To.Before(s.From) || s.To.After(at(120))) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
	records := journalOf(t, submitted, &forge.RunAdmitted{Run: 1})
	again := records[1].Effects.Commands[0]
	taken := again.Attempt
	again.Attempt.Claim = 2
	records = append(records,
		forge.Record{
			Events:  []forge.Event{{ID: "x", To: key, At: at(100), Message: &forge.TimerFired{Key: "x"}}},
			Effects: forge.Effects{Cancels: []forge.Attempt{taken}, Commands: []forge.Command{again}}, // as the rules take it from a worker
		},
		forge.Record{Events: []forge.Event{{ID: "y", To: key, At: at(110), Message: analyzed(1, at(61), time.Second, &forge.Analysis{})}}},
		forge.Record{Events: []forge.Event{{ID: "z", To: key, At: at(120), Message: analyzed(2, at(101), time.Second, &forge.Analysis{})}}},
	)
	want := []string{"queue analyze 1.1 60-100 given to another worker", "queue analyze 1.2 100-101 ", "attempt analyze 1.2 101-102 ok"}
	if lines := told(Timeline(key, records).Spans); !slices.Equal(lines[:min(3, len(lines))], want) {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

// TestTimelinePages: a page has its records and the spans of their time;
// following next comes to the end, however long the texts are.
func TestTimelinePages(t *testing.T) {
	var all document.Timeline
	for i := range 1000 {
		all.Records = append(all.Records, document.Record{Number: i + 1, At: at(i), Events: []string{strings.Repeat("<", 5000)}, Rules: make([]string, 500)})
		all.Spans = append(all.Spans, document.Span{Kind: document.SpanQueue, From: at(i), To: at(i + 1), Detail: strings.Repeat("\u202e", 5000)})
	}
	n := 0
	for after, pages := 0, 0; ; pages++ {
		page := all
		page.Records, page.Spans = slices.Clone(all.Records), slices.Clone(all.Spans)
		page.Page(document.TimelineRequest{After: after})
		if page.Total != 1000 || page.From != after || len(page.Records) == 0 || len(page.Records) > 100 || pages > 1000 {
			t.Fatalf("from %d: %d of %d after %d", page.From, len(page.Records), page.Total, after)
		}
		for _, s := range page.Spans {
			if s.To.Before(page.Records[0].At) || s.From.After(page.Records[len(page.Records)-1].At) {
				t.Fatalf("%v is not of the page from %d", s.From, after)
			}
		}
		if len(page.Spans)+page.LeftOut > len(page.Records)+1 {
			t.Fatalf("%d spans", len(page.Spans))
		}
		for _, r := range page.Records {
			if n++; r.Number != n || len(r.Events[0]) > 600 || len(r.Rules) > 51 {
				t.Fatalf("record %d is %+.200v", n, r)
			}
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if n != 1000 {
		t.Errorf("%d records", n)
	}
	for _, after := range []int{1000, 5000, 1 << 62} {
		page := all
		page.Page(document.TimelineRequest{After: after})
		if len(page.Records) > 0 || len(page.Spans) > 0 || page.Next != 0 || page.From != 1000 {
			t.Errorf("after the end: %+.200v", page)
		}
	}
}
