package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"mime"
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
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// The attacks that the page of costs has to stand, each with its test:
//
//   - a title, a model or a requester is HTML, reorders text or cannot be seen: TestConsoleCostsOfLiars
//   - figures are below zero or larger than all money; a budget is overspent: TestConsoleCostsOfLiars, TestChartStaysOnItsSheet, TestBudgets
//   - there are more rows than an answer has room for: TestConsoleCostsOfLiars
//   - the costs of another project are asked for, or the role is taken away: TestConsoleCosts
//   - a parameter is out of range, unknown or given twice: TestConsoleCosts, TestParseQuery
//   - a name writes into a header, or into the folder of the download: TestConsoleCosts
//   - the journals are being read, or no runner is up: TestConsoleCostsLater

// accounts has a runner that tells the costs which a function returns.
func (w *world) accounts(costs func(forge.ProjectID, document.CostsRequest) (document.Costs, error)) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		err := w.bus.Submissions.Serve(ctx, requests.ServeConfig{
			Costs: func(_ context.Context, p forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
				return costs(p, r)
			},
			Queue: func(context.Context, forge.ProjectID, document.QueueRequest) (document.Queue, error) {
				return document.Queue{}, errors.New("this one tells of no queue")
			},
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
	wait.Until(w.t, "the runner answers", func() bool {
		return w.request("viewer", http.MethodGet, "/api/v1/projects/shop/costs", "").status != http.StatusServiceUnavailable
	})
}

// bookkeeping starts an installation with a console and without a runner.
func bookkeeping(t *testing.T) *world {
	t.Helper()
	return start(t, gateway.Settings{Console: gateway.Console{Key: filepath.Join(t.TempDir(), "console.key"), Projects: []string{"shop"}}})
}

// TestConsoleCosts shows what agents used by each group, leads to intents and
// downloads the same, to those who may look at the project and to no others.
func TestConsoleCosts(t *testing.T) {
	t.Parallel()
	w := withConsole(t)
	vic := w.signIn("viewer")
	vic.get("/console/costs").wants(t, "before any call", http.StatusOK, "No agent was called in these 30 days.", "<title>Costs of shop")
	path, _ := w.done("costs")
	id := path[strings.LastIndexByte(path, '/')+1:]
	if inbox := vic.get("/console/inbox"); !strings.Contains(inbox.text, `href="/console/costs"`) {
		t.Error("nothing leads to the costs")
	}
	var sum document.Costs
	got := w.request("viewer", http.MethodGet, "/api/v1/projects/shop/costs", "")
	if err := json.Unmarshal([]byte(got.text), &sum); err != nil || sum.Total.CostUSD == 0 {
		t.Fatal(err, got.text)
	}
	total := fmt.Sprintf("$%.2f", sum.Total.CostUSD)
	today := time.Now().UTC().Format(time.DateOnly)
	for by, key := range map[string]string{
		"": today, "day": today, "step": "review", "agent": "claude", "model": "small", "requester": "ada", "type": "not known", "project": "<bdi>shop</bdi>",
		"intent": `href="/console/projects/shop/intents/` + id + `"`,
	} {
		for _, days := range []string{"", "7", "30", "90"} {
			p := vic.get("/console/costs?by=" + by + "&days=" + days)
			p.wants(t, by+" "+days, http.StatusOK, key, total, `<svg class="chart"`, `role="img"`, today, `aria-current="page"`)
			if n := strings.Count(p.text, `<rect class="spent"`); n != 1 && time.Now().UTC().Format(time.DateOnly) == today {
				t.Errorf("%s %s: %d bars", by, days, n)
			}
			if strings.Contains(p.text, " style=") {
				t.Errorf("%s %s has a style", by, days)
			}
		}
	}
	exported := vic.get("/console/costs/export?by=model&days=7&project=shop")
	kind, params, err := mime.ParseMediaType(exported.header.Get("Content-Disposition"))
	if exported.status != http.StatusOK || kind != "attachment" || params["filename"] != "costs-shop-model-7-days.json" || err != nil ||
		exported.header.Get("Content-Type") != "application/json" {
		t.Errorf("exported: %d %v %v", exported.status, exported.header, err)
	}
	var c document.Costs
	if err := json.Unmarshal([]byte(exported.text), &c); err != nil || c.By != document.CostsByModel || c.Rows[0].Key != "small" ||
		c.Total.CostUSD != sum.Total.CostUSD {
		t.Errorf("exported: %v %s", err, exported.text)
	}
	for query, says := range map[string]string{
		"?project=..": "no project", "?project=%0d%0aX:y": "no project", "?project=SHOP": "no project", "?days=0": "Days: ", "?days=8": "Days: ",
		"?days=-1": "Days: ", "?by=task": "By: ", "?by=%3cscript%3e": "By: ", "?days=7&days=7": "twice", "?since=2026-01-01": "no parameter",
	} {
		for _, page := range []string{"/console/costs", "/console/costs/export"} {
			vic.get(page+query).wants(t, page+query, http.StatusBadRequest, says)
		}
	}
	for _, page := range []string{"/console/costs?project=shop", "/console/costs/export?project=shop"} {
		p := w.signIn("banker").get(page)
		p.wants(t, "another project's", http.StatusForbidden)
		if strings.Contains(p.text, total) {
			t.Errorf("%s tells of another project", page)
		}
		(&browser{w: w}).get(page).wants(t, "of no session", http.StatusUnauthorized)
	}
	vic.get("/console/costs?project=bank").wants(t, "another project's", http.StatusForbidden)
	chooses(t, w)
	list := maps.Clone(entries)
	list["viewer"] = "person: vic, projects: {attic: []}"
	w.writeTokens(list)
	wait.Until(t, "the role is taken away", func() bool { return vic.get("/console/costs?project=shop").status == http.StatusForbidden })
	vic.get("/console/costs").wants(t, "without a role", http.StatusForbidden, "takes a role")
}

// chooses checks that whoever may look at several projects chooses among them,
// and that those without a role are not named.
func chooses(t *testing.T, w *world) {
	t.Helper()
	list := maps.Clone(entries)
	list["dee"] = "person: dee, projects: {attic: [], bank: [viewer], shop: [viewer]}"
	w.writeTokens(list)
	wait.Until(t, "dee is known", func() bool { return w.knows("dee") })
	p := w.signIn("dee").get("/console/costs?project=shop&days=7")
	p.wants(t, "of two projects", http.StatusOK, "<option>bank</option>", "<option selected>shop</option>", `name="days" value="7"`)
	if strings.Contains(p.text, "attic") {
		t.Error("it names a project without a role")
	}
	w.signIn("dee").get("/console/costs").wants(t, "the first of two", http.StatusOK, "<title>Costs of bank", "No agent was called")
	w.signIn("dee").get("/console/costs?project=bank&by=project").wants(t, "by project", http.StatusOK, "<bdi>shop</bdi>",
		"What is above is of <code>bank</code> alone.")
	if p := w.signIn("banker").get("/console/costs?by=project"); p.status != http.StatusOK || strings.Contains(p.text, "shop") {
		t.Errorf("by project, another project's people are told: %d %s", p.status, p.text)
	}
	w.signIn("every").get("/console/costs?project=shop").wants(t, "of all projects", http.StatusOK, `<input name="project" value="shop"`)
	if p := w.signIn("viewer").get("/console/costs?project=shop"); strings.Contains(p.text, "<select") {
		t.Error("there is a choice of one project")
	}
}

// TestConsoleCostsOfLiars: keys and titles are texts, figures fit whatever they
// are, 200 rows and the others are there, and a budget that was overspent says so.
func TestConsoleCostsOfLiars(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	over, of := -2.5, 10.0
	var absurd atomic.Bool
	w.accounts(func(p forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
		day := time.Now().UTC().Format(time.DateOnly)
		c := document.Costs{By: r.By, Total: document.CostRow{Key: "total", CostUSD: 4, Attempts: 201}, Budgets: []document.CostBudget{
			{Project: p, Of: "project", BudgetUSD: 10, SpentUSD: 12.5, LeftUSD: -2.5}, {Project: p, Of: "day", BudgetUSD: 5, SpentUSD: 4, LeftUSD: 1},
		}}
		for i := range 300 {
			c.Rows = append(c.Rows, document.CostRow{
				Key: fmt.Sprintf("%s%s %d", evil, hides, i), Title: "T " + evil + hides, Calls: 1234567, BudgetUSD: &of, LeftUSD: &over,
			})
		}
		if r.By == document.CostsByDay || r.By == "" {
			c.Rows = []document.CostRow{{Key: day, CostUSD: 4, Calls: 3}, {Key: time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), CostUSD: 2, Calls: 1}}
		}
		if absurd.Load() {
			for i := range c.Rows {
				c.Rows[i].CostUSD, c.Rows[i].Seconds, c.Rows[i].InputTokens = math.MaxFloat64, math.MaxFloat64, math.MinInt64
			}
			c.Rows[len(c.Rows)-1].CostUSD = -math.MaxFloat64
			c.Total.CostUSD = -1
		}
		c.Bound()
		return c, nil
	})
	vic := w.signIn("viewer")
	for _, by := range []string{"day", "step", "agent", "model", "requester", "type", "intent"} {
		for _, is := range []bool{false, true} {
			absurd.Store(is)
			p := vic.get("/console/costs?by=" + by)
			p.wants(t, by, http.StatusOK, "overspent by $2.50 of $10.00", "$1.00 left of $5.00", "<meter")
			if is {
				continue
			}
			if by != "day" {
				p.wants(t, by, http.StatusOK, "1,234,567", "&lt;U&#43;202E&gt;", "&lt;/bdi&gt;", "All others", "At the rate of the last day with calls, $2.00, ")
				if n := strings.Count(p.text, `<th scope="row"`); n != 200+30+2 {
					t.Errorf("%s: %d rows", by, n)
				}
			}
			if by == "intent" {
				p.wants(t, by, http.StatusOK, "T &lt;/title&gt;")
			}
			if strings.Contains(p.text, `href="/console/projects/`) || len(p.text) > 600_000 {
				t.Errorf("%s: leads to what is no intent, or has %d bytes", by, len(p.text))
			}
			for _, bad := range []string{"<script", "<img", "<svg/", "onerror=alert(1)>", "\u202e", "\u2066", "\u200b", "\U000e0041", " style=", "NaN", "Inf"} {
				if strings.Contains(p.text, bad) {
					t.Errorf("%s has %q", by, bad)
				}
			}
		}
		for _, bad := range []string{"NaN", "Inf", "e+308%", strings.Repeat("9", 12), strings.Repeat("0", 30)} {
			if p := vic.get("/console/costs?by=" + by); strings.Contains(p.text, bad) {
				t.Errorf("%s, absurd, has %q", by, bad)
			}
		}
	}
	for _, c := range []byte(vic.get("/console/costs/export?by=intent").text) {
		if (c < ' ' || c > '~') && c != '\n' {
			t.Fatalf("byte %#x in the export", c)
		}
	}
}

// TestConsoleCostsLater: while the journals are being read, or no runner is up,
// the page says so and leads to itself.
func TestConsoleCostsLater(t *testing.T) {
	t.Parallel()
	w := bookkeeping(t)
	const again = `<a class="button" href="/console/costs?by=model&amp;days=7&amp;project=shop">Try again</a>`
	vic := w.signIn("viewer")
	vic.get("/console/costs?by=model&days=7").wants(t, "without a runner", http.StatusServiceUnavailable, "No runner is up", again)
	w.decides(quota.Limits{})
	vic.get("/console/costs?by=model&days=7").wants(t, "with one", http.StatusOK, "No agent was called")

	w = bookkeeping(t)
	var reads atomic.Bool
	w.accounts(func(_ forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
		if reads.Load() {
			return document.Costs{}, &requests.RequestError{Code: http.StatusServiceUnavailable, Fields: []requests.RefusedField{{
				Reason: "the journals are being read; try again",
			}}}
		}
		return document.Costs{By: r.By, Rows: []document.CostRow{}}, nil
	})
	reads.Store(true)
	const why = "the journals are being read; try again"
	w.request("viewer", http.MethodGet, "/api/v1/projects/shop/costs", "").wants(t, "the API", http.StatusServiceUnavailable, why)
	vic = w.signIn("viewer")
	p := vic.get("/console/costs?by=model&days=7")
	p.wants(t, "while it is read", http.StatusServiceUnavailable, "The journals are being read; try again.", again)
	vic.get("/console/costs/export?by=model").wants(t, "the download", http.StatusServiceUnavailable, "The journals are being read; try again.")
	reads.Store(false)
	vic.get("/console/costs?by=model&days=7").wants(t, "then", http.StatusOK, "No agent was called")
}

// TestConsoleCostsInChromium looks at the page of costs in light and dark, from
// the smallest screen to the largest: nothing is wider than the screen or
// hidden behind something else, each day has its bar in the chart, and links
// work. Its picture is that of the documents: make screenshots keeps it.
func TestConsoleCostsInChromium(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	ctx := openBrowser(t)
	w := bookkeeping(t)
	w.accounts(month)
	acts(ctx, t, chromedp.Navigate(w.base+"/console/sign-in?next=/console/costs"), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", w.secrets["viewer"]), chromedp.Submit("#token"), chromedp.WaitVisible("svg.chart"))
	for _, one := range []struct {
		name, by, scheme string
		width, height    int64
	}{
		{"console-costs", "intent", "light", 1100, 1270},
		{"", "model", "dark", 1100, 1000},
		{"", "intent", "dark", 320, 1900},
		{"", "day", "light", 320, 1400},
		{"", "day", "light", 3840, 1400},
	} {
		v := view{one.name, "/console/costs?by=" + one.by, one.scheme, one.width, one.height}
		v.picture(ctx, t, w.base)
		if wide := reads(ctx, t, chromedp.Evaluate[int]("document.documentElement.scrollWidth")); int64(wide) > one.width {
			t.Errorf("by %s at %d has %d", one.by, one.width, wide)
		}
		if out := reads(ctx, t, chromedp.Evaluate[int](`(() => { const box = document.querySelector("svg.chart").getBoundingClientRect();
			return [...document.querySelectorAll("svg.chart *:not(title)")].filter((e) => { const b = e.getBoundingClientRect();
				return b.left < box.left - 1 || b.right > box.right + 1 || b.top < box.top - 1 || b.bottom > box.bottom + 1 }).length })()`)); out > 0 {
			t.Errorf("by %s at %d: %d parts are outside of the chart", one.by, one.width, out)
		}
		if n := reads(ctx, t, chromedp.Evaluate[int](`document.querySelectorAll("svg.chart rect.spent").length`)); n != 22 {
			t.Errorf("%d bars", n)
		}
	}
	acts(ctx, t, chromedp.EmulateViewport(1100, 900), chromedp.Click(`nav[aria-label="Time"] a:first-child`), chromedp.WaitVisible("svg.chart"))
	if at := reads(ctx, t, chromedp.Location()); !strings.HasSuffix(at, "/console/costs?by=day&days=7&project=shop") {
		t.Errorf("the link leads to %s", at)
	}
}

// month has the costs of a month in which no agent was called on weekends.
func month(p forge.ProjectID, r document.CostsRequest) (document.Costs, error) {
	row := func(key string, usd float64) document.CostRow {
		n := int64(usd * 1000)
		return document.CostRow{
			Key: key, Attempts: int(n / 800), Calls: n / 700, Turns: n / 70, InputTokens: 40 * n, OutputTokens: 11 * n, CacheReadTokens: 900 * n,
			CacheWriteTokens: 70 * n, Seconds: usd * 190, CostUSD: usd,
		}
	}
	var days []document.CostRow
	sum, today := 0.0, 0.0
	for i := range 30 {
		if i%7 < 5 {
			today = 6 + float64(i*i*7%11) + float64(i)/10
			days = append(days, row(time.Now().UTC().AddDate(0, 0, i-29).Format(time.DateOnly), today))
			sum += today
		}
	}
	c := document.Costs{By: r.By, Since: r.Since, Until: r.Until, Total: document.CostRow{Key: "total"}, Budgets: []document.CostBudget{
		{Project: p, Of: "project", BudgetUSD: 500, SpentUSD: sum, LeftUSD: 500 - sum},
		{Project: p, Of: "day", BudgetUSD: 12, SpentUSD: today, LeftUSD: 12 - today},
	}}
	switch r.By {
	case document.CostsByDay:
		c.Rows = days
	case document.CostsByModel:
		c.Rows = []document.CostRow{row("large-4", 0.72*sum), row("small-4", 0.26*sum), row("", 0.02*sum)}
	default:
		for i, title := range []string{"Update the parser to version 1.3", "Say what the limits are", "Retry a download that was cut off", "Name the program"} {
			one, of := row(fmt.Sprintf("intent-%d", i), sum*float64(4-i)/10), 100.0
			left := of - one.CostUSD
			one.Title, one.BudgetUSD, one.LeftUSD = title, &of, &left
			c.Rows = append(c.Rows, one)
		}
	}
	for i := range c.Rows {
		c.Total.Merge(&c.Rows[i])
	}
	return c, nil
}
