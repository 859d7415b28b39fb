package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// TestHealthIsTold: whoever may look is told how the work went, by the API and on a page with
// charts and tables, and downloads the same; others are not, and what is not understood is named.
func TestHealthIsTold(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "k"), Projects: []string{"shop"}}})
	vic := w.signIn("viewer")
	const address = "/api/v1/projects/shop/health"
	vic.get("/console/health").wants(t, "without a runner", http.StatusServiceUnavailable, "No runner is up",
		`<a class="button" href="/console/health?of=queue&amp;project=shop&amp;weeks=8">Try again</a>`)
	w.done("health")
	var h figures.Health
	got := w.request("viewer", http.MethodGet, address+"?weeks=4", "")
	got.wants(t, "health", http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &h); err != nil {
		t.Fatal(err)
	}
	a := h.Total
	if got := fmt.Sprint(len(h.Weeks), a.Done, a.Failed, a.Made, a.MadeAgain, a.ReviewsRejected, a.VerifyFailed, a.Conflicts); got != "4 1 0 3 2 1 1 0" {
		t.Errorf("it is %s: %+v", got, a)
	}
	counts := map[string]int{}
	for _, d := range append(a.Steps, a.Waits...) {
		counts[d.Key] = d.Count
		if d.P50 < 0 || d.P90 < d.P50 || d.P99 < d.P90 {
			t.Errorf("percentiles are %+v", d)
		}
	}
	if counts["implement"] != 3 || counts["rebase"] != 3 || counts["review"] != 2 || counts["person"] != 1 || counts["merge_queue"] != 1 ||
		counts["merge"] != 1 || counts["queue"] < 9 {
		t.Errorf("counted are %v", counts)
	}
	if len(h.Checks) != 1 || h.Checks[0].Command != "go test ./..." || h.Checks[0].Runs < 3 || h.Checks[0].Failed != 1 {
		t.Errorf("the commands are %+v", h.Checks)
	}
	for _, of := range []string{"queue", "person", "implement", "merge", "budget"} {
		p := vic.get("/console/health?weeks=4&of=" + of)
		p.wants(t, of, http.StatusOK, "<title>Health of shop", `role="img"`, "2 (67%)", "100%", "go test ./...", h.Weeks[3].Week)
		if n := strings.Count(p.text, `<svg class="chart`); n != map[bool]int{true: 1, false: 2}[of == "budget"] || strings.Contains(p.text, " style=") {
			t.Errorf("%s: %d drawings", of, n)
		}
	}
	exported := vic.get("/console/health/export?weeks=4")
	var same figures.Health
	if err := json.Unmarshal([]byte(exported.text), &same); err != nil || fmt.Sprint(same.Total) != fmt.Sprint(h.Total) ||
		!strings.Contains(exported.header.Get("Content-Disposition"), "health-shop-4-weeks.json") {
		t.Errorf("exported is %v %s", exported.header, exported.text)
	}
	for _, query := range []string{"?weeks=0", "?weeks=27", "?weeks=x", "?weeks=4&weeks=4", "?of=queue"} {
		w.request("viewer", http.MethodGet, address+query, "").wants(t, query, http.StatusBadRequest)
	}
	for _, query := range []string{"?weeks=5", "?of=%3Cscript%3E", "?project=..", "?since=x", "?weeks=4&weeks=4"} {
		vic.get("/console/health"+query).wants(t, query, http.StatusBadRequest)
		vic.get("/console/health/export"+query).wants(t, query, http.StatusBadRequest)
	}
	w.request("banker", http.MethodGet, address, "").wants(t, "another project", http.StatusForbidden)
	w.signIn("banker").get("/console/health?project=shop").wants(t, "another project", http.StatusForbidden)
	list := maps.Clone(entries)
	list["viewer"] = "person: vic, projects: {attic: []}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return vic.get("/console/health?project=shop").status == http.StatusForbidden })
	vic.get("/console/health").wants(t, "without a role", http.StatusForbidden, "takes a role")
}

// goes has a runner that tells of health and of a merge queue what functions return.
func (w *world) goes(health func(figures.HealthRequest) figures.Health, queue func() document.Queue) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := w.bus.Submissions.Serve(ctx, requests.ServeConfig{
			Health: func(_ context.Context, _ forge.ProjectID, r figures.HealthRequest) (figures.Health, error) {
				return health(r), nil
			},
			Queue: func(context.Context, forge.ProjectID, document.QueueRequest) (document.Queue, error) {
				return queue(), nil
			},
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
	wait.Until(w.t, "the runner answers", func() bool {
		_, err := w.bus.Submissions.Page(wait.Context(w.t), "shop", "gateway", "queue", document.QueueRequest{})
		return err == nil
	})
}

// quarter is the health of a project over some weeks.
func quarter(r figures.HealthRequest) figures.Health {
	var h figures.Health
	sum, monday := &h.Total, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	lasts := func(key string, n int, p50 float64) figures.Durations {
		return figures.Durations{Key: key, Count: n, P50: p50, P90: 3 * p50, P99: 7 * p50}
	}
	of := func(n int, slow float64) (waits, steps []figures.Durations) {
		return []figures.Durations{lasts("merge_queue", n, 40*slow), lasts("person", n/2, 4000*slow), lasts("queue", 4*n, 2*slow)},
			[]figures.Durations{
				lasts("analyze", n, 35*slow), lasts("implement", n, 240*slow), lasts("merge", n, 2*slow), lasts(figures.TrialKey, n, 58*slow),
				lasts("rebase", n, 62*slow), lasts("review", n, 50*slow),
			}
	}
	h.Total.Waits, h.Total.Steps = of(320, 1)
	for i := range max(r.Weeks, 1) {
		n := 20 + i*i%17
		week := figures.HealthWeek{
			Week: monday.AddDate(0, 0, -7*(r.Weeks-1-i)).Format(time.DateOnly), Done: n, Failed: i % 5, Rejected: i % 2, Made: 2 * n, MadeAgain: n / 2,
			ReviewsRejected: n / 3, VerifyFailed: n / 4, Conflicts: i % 3,
		}
		week.Waits, week.Steps = of(n, 1+float64(i*7%5)/4)
		h.Weeks = append(h.Weeks, week)
		sum.Done, sum.Failed, sum.Rejected = sum.Done+week.Done, sum.Failed+week.Failed, sum.Rejected+week.Rejected
		sum.Made, sum.MadeAgain, sum.Conflicts = sum.Made+week.Made, sum.MadeAgain+week.MadeAgain, sum.Conflicts+week.Conflicts
		sum.ReviewsRejected, sum.VerifyFailed = sum.ReviewsRejected+week.ReviewsRejected, sum.VerifyFailed+week.VerifyFailed
	}
	h.Checks = []figures.CheckStat{
		{Command: "go test -race ./...", Runs: 420, Failed: 33, Verified: 380, Flaky: 6, Red: 1, MedianSeconds: 58, FlakyAt: time.Now().Add(-30 * time.Hour)},
		{Command: "go vet ./...", Runs: 400, Failed: 4, Verified: 380, MedianSeconds: 4},
		{Name: "end-to-end", Command: "make e2e", Runs: 40, Failed: 9, Verified: 38, MedianSeconds: 190},
	}
	return h
}

// line is a merge queue in which a batch is tried while main is red.
func line() document.Queue {
	until := time.Now().Add(40 * time.Minute)
	seconds := func(n int) *int { return &n }
	change := func(i int, s document.QueueState, words string, left int) document.QueuedChange {
		id := forge.IntentID(fmt.Sprintf("update-the-parser-%d", i))
		return document.QueuedChange{Intent: id, Task: forge.TaskID(string(id) + "-001"), Position: i, State: s, Words: words, Seconds: seconds(left)}
	}
	return document.Queue{
		Parallel: 4, Batch: 2, Basis: &document.QueueBasis{Trials: 20, TrialSeconds: 60, Merges: 20, MergeSeconds: 2},
		Facts: []document.Fact{
			{Fact: forge.FailQuota, Of: "claude", Why: "five-hour limit reached", Since: time.Now().Add(-20 * time.Minute), Until: &until},
		},
		Changes: []document.QueuedChange{
			change(1, document.QueueMerging, "is being merged", 2),
			change(2, document.QueuePassed, "second in the merge queue, passed on top of update-the-parser-1-001", 4),
			change(3, document.QueueRiding, "third in the merge queue, is tried together with later ones on top of update-the-parser-2-001", 44),
			change(4, document.QueueTrying, "fourth in the merge queue, is tried, and decides about those before it in its batch, on top of "+
				"update-the-parser-2-001, update-the-parser-3-001", 46),
			change(5, document.QueueStopped, "fifth in the merge queue, did not pass on top of update-the-parser-4-001; its merge finds out why", 108),
			change(6, document.QueueQueued, "sixth in the merge queue", 110),
		},
	}
}

// TestConsoleHealthInChromium looks at the page of health and at a board with a merge queue,
// in light and dark, from the smallest screen to the largest: nothing is wider than the screen
// or outside of its chart, and no text is HTML. Their pictures are those of the documents.
func TestConsoleHealthInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := bookkeeping(t)
	var hostile atomic.Bool
	w.goes(func(r figures.HealthRequest) figures.Health {
		h := quarter(r)
		if hostile.Load() {
			h.Checks[2].Name, h.Checks[2].Command = "e2e "+evil+hides, "make e2e "+evil+hides
		}
		return h
	}, func() document.Queue {
		q := line()
		if hostile.Load() {
			q.Facts[0].Why, q.Changes[3].Words = "limit "+evil+hides, "fourth "+evil+hides
		}
		return q
	})
	acts(ctx, t, chromedp.Navigate(w.base+"/console/sign-in?next=/console/health"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", w.secrets["viewer"]), chromedp.Submit("#token"), chromedp.WaitVisible("svg.chart"))
	for _, one := range []view{
		{"console-health", "/console/health?of=review", "light", 1100, 1720},
		{"console-queue", "/console/board", "light", 1100, 800},
		{"", "/console/health?weeks=26&of=queue", "light", 1100, 1500},
		{"", "/console/health?of=person", "dark", 1100, 1500},
		{"", "/console/health?of=merge_queue", "dark", 320, 2600},
		{"", "/console/health", "light", 3840, 1500},
		{"", "/console/board", "light", 1100, 800},
		{"", "/console/board", "dark", 320, 1900},
	} {
		one.picture(ctx, t, w.base)
		hostile.Store(one.name == "console-queue" || hostile.Load()) // the pictures of the documents are those of a peaceful project
		if wide := reads(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); int64(wide) > one.width {
			t.Errorf("%s at %d has %d", one.address, one.width, wide)
		}
		if out := reads(ctx, t, chromedp.Evaluate[int](`[...document.querySelectorAll("svg.chart")].flatMap((chart) => { const box = chart.getBoundingClientRect();
			return [...chart.querySelectorAll("*:not(title)")].filter((e) => { const b = e.getBoundingClientRect();
				return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1 }) }).length`)); out > 0 {
			t.Errorf("%s at %d: %d parts are outside of their chart", one.address, one.width, out)
		}
		if made := reads(ctx, t, chromedp.Evaluate[int]("document.querySelectorAll('main img, main script, main svg:not(.swatch, .chart)').length")); made > 0 {
			t.Errorf("%s has %d elements of a text", one.address, made)
		}
	}
}
