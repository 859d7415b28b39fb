package board

import (
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestBoardFilters selects by what the address says, and counts by state.
func TestBoardFilters(t *testing.T) {
	one := func(id, title string, status forge.Status, waiting forge.Waiting, risk forge.Risk) document.State {
		s := document.State{Project: "shop", Intent: forge.IntentID(id)}
		s.Title, s.Status, s.Waiting, s.Risk, s.Requester = title, status, waiting, risk, "ada"
		return s
	}
	for query, want := range map[string]string{
		"":                         "asks fails done works",
		"search=PARSER":            "works",
		"search=ada":               "asks fails done works",
		"risk=high":                "asks",
		"risk=high&risk=low":       "asks done",
		"state=waits+for+a+person": "asks fails",
		"state=in+progress":        "works",
		"state=done":               "done",
		"state=ended+otherwise":    "",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse("/console/board", q)
		if err != nil {
			t.Fatal(err)
		}
		p := f.List([]document.State{
			one("works", "The parser", forge.StatusExecuting, "", forge.RiskMed), one("done", "A", forge.StatusDone, "", forge.RiskLow),
			one("asks", "B", forge.StatusProposed, forge.WaitingApproval, forge.RiskHigh), one("fails", "C", forge.StatusError, forge.WaitingFailed, ""),
		})
		var got []string
		for i := range p.Rows {
			got = append(got, string(p.Rows[i].Intent))
		}
		if fmt.Sprint(got) != "["+want+"]" {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
		if query == "" && fmt.Sprint(p.Tabs[0].Count, p.Tabs[1].Count, p.Tabs[2].Count, p.Tabs[4].Count) != "4 2 1 1" {
			t.Errorf("the states are %+v", p.Tabs)
		}
	}
}

// TestParse: what the board does not know, what is given twice and what is no
// day is a sentence, and links keep the rest of the filter.
func TestParse(t *testing.T) {
	for query, says := range map[string]string{
		"of=x": "no filter", "search=a&search=b": "twice", "agent=a&agent=b": "twice",
		"since=yesterday": "Since", "state=a&state=b": "twice", "page=1&page=2": "twice",
	} {
		q, err := url.ParseQuery(query)
		if _, wrong := Parse("/b", q); err != nil || wrong == nil || !strings.Contains(wrong.Error(), says) {
			t.Errorf("%s: %v, %v", query, wrong, err)
		}
	}
	f, err := Parse("/b", url.Values{
		"label": {"a b"}, "type": {""}, "agent": {"codex"},
		"page": {"3"}, "since": {"2026-03-01"}, "project": {"x", "y"},
	})
	if err != nil || f.All("label") != "a b" || len(f.Values["label"]) != 2 || f.Has("type", "") || fmt.Sprint(f.Projects()) != "[x y]" {
		t.Fatal(f, err)
	}
	if got := f.Ask().Encode(); got != "agent=codex&label=a&label=b&since=2026-03-01T00%3A00%3A00Z" {
		t.Error(got)
	}
	if got := f.with("state", "done"); got != "/b?agent=codex&label=a&label=b&project=x&project=y&since=2026-03-01&state=done" {
		t.Error(got)
	}
	for _, page := range []string{"9223372036854775807", "-1", "2", "1000"} {
		f, err := Parse("/b", url.Values{"page": {page}})
		if err != nil {
			t.Fatal(err)
		}
		if l := f.List(make([]document.State, 60)); len(l.Rows) > PerPage || l.To > 60 || l.From > l.To {
			t.Errorf("page %s has %d rows, %d to %d", page, len(l.Rows), l.From, l.To)
		}
	}
}

// TestQueues: each fact says in words what waits and what follows, and there is
// room for so many changes of all projects.
func TestQueues(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	d := document.Queue{Paused: true, Basis: &document.QueueBasis{Trials: 3, Merges: 4}}
	for _, f := range []forge.FailureReason{forge.FailOrigin, forge.FailPush, forge.FailBase, forge.FailQuota, forge.FailAuth, "other"} {
		d.Facts = append(d.Facts, document.Fact{Fact: f, Of: "claude", Why: "because", Since: noon})
	}
	d.Facts[3].Until = &noon
	for i, s := range []document.QueueState{
		document.QueueMerging, document.QueueTrying, document.QueueRiding, document.QueuePassed, document.QueueStopped, document.QueueQueued, document.QueuePull,
	} {
		seconds := 100 * i
		d.Changes = append(d.Changes, document.QueuedChange{Intent: "a", Task: "a-001", Position: i + 1, State: s, Seconds: &seconds})
	}
	intents := []document.State{{Project: "bank", Intent: "a"}, {Project: "shop", Intent: "a"}}
	intents[0].Title, intents[1].Title = "another", "Title"
	var q Queues
	q.Add("shop", &d, intents)
	says := map[string]bool{}
	for _, f := range q.Facts {
		if f.Says == "" || f.Then == "" || says[f.Says] || f.Project != "shop" || f.Says != "is paused" && f.Why != "because" {
			t.Errorf("%+v", f)
		}
		says[f.Says] = true
	}
	if len(q.Facts) != 7 || !q.Facts[4].Until.Equal(noon) || q.Basis != "if each trial and merge takes as long as the last 3 and 4, and passes" {
		t.Errorf("%+v", q)
	}
	labels := map[string]bool{}
	for i, c := range q.Cars {
		if c.Title != "Title" || c.Label == "" || labels[c.Label] || (c.Left == "") != (d.Changes[i].Seconds == nil) {
			t.Errorf("%+v", c)
		}
		labels[c.Label] = true
	}
	for range 10 {
		q.Add("bank", &d, nil)
	}
	if len(q.Cars) != mostCars || q.More != 77-mostCars || q.Cars[8].Title != "a" {
		t.Errorf("%d changes and %d more", len(q.Cars), q.More)
	}
}

// TestLeft: an estimate is words that fit, whatever it is.
func TestLeft(t *testing.T) {
	for seconds, want := range map[int]string{
		-5: "at any moment", 0: "at any moment", 42: "in about 42 s", 60: "in about 1 min", 3580: "in about 1 h 0 min", 7300: "in about 2 h 2 min",
		10 * 24 * 3600: "in about 10 days",
	} {
		if got := Left(seconds); got != want {
			t.Errorf("%d: %q, want %q", seconds, got, want)
		}
	}
	if got := Left(math.MaxInt - 60); len(got) > 40 {
		t.Error(got)
	}
}
