package costs

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/bars"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// day returns the row of a day, some days before noon's.
func day(before int, usd float64) document.CostRow {
	return document.CostRow{Key: noon.AddDate(0, 0, -before).Format(time.DateOnly), CostUSD: usd, Calls: 1, Attempts: 1}
}

// TestParseQuery: what is left out has a value, and whatever is out of range or
// given twice is named.
func TestParseQuery(t *testing.T) {
	for text, want := range map[string]Query{
		"": {30, document.CostsByDay}, "days=&by=&project=": {30, document.CostsByDay}, "days=90&by=model&project=shop": {90, document.CostsByModel},
	} {
		q, err := url.ParseQuery(text)
		if got, wrong := ParseQuery(q); err != nil || wrong != nil || got != want {
			t.Errorf("%q: %+v, %v, %v", text, got, wrong, err)
		}
	}
	for text, says := range map[string]string{
		"days=0": "days", "days=-7": "days", "days=8": "days", "days=07": "days", "days=7.0": "days", "days=99999999999999999999": "days", "days=+7": "days",
		"by=task": "by", "by=Day": "by", "by=%3Cscript%3E": "by", "since=x": "since",
		"days=7&days=30": "days", "project=a&project=b": "project",
	} {
		q, err := url.ParseQuery(text)
		if _, wrong := ParseQuery(q); err != nil || wrong == nil || !strings.Contains(wrong.Error(), says) {
			t.Errorf("%q: %v, %v", text, wrong, err)
		}
	}
	for _, choice := range append(Query{7, document.CostsByStep}.Times("shop"), Query{7, document.CostsByStep}.Groups("shop")...) {
		got, err := ParseQuery(choice.Values)
		if err != nil || choice.Here != (got == Query{7, document.CostsByStep}) || choice.Values.Get("project") != "shop" {
			t.Errorf("%+v: %+v, %v", choice, got, err)
		}
	}
}

// TestDays: each day has a bar in its place, those without calls as well, and
// the highest amount is below the first line.
func TestDays(t *testing.T) {
	c := Days([]document.CostRow{day(6, 1.5), day(1, 3), day(0, 0.0001), day(7, 1000), day(-1, 1000), {Key: "no day", CostUSD: 5}}, noon.AddDate(0, 0, -6), noon)
	if len(c.Bars) != 7 || c.Lines[0].USD != 5 || c.Lines[1].USD != 2.5 || c.Highest.Day.Day() != 30 || len(c.Marks) != 3 {
		t.Fatalf("%+v", c)
	}
	for i, want := range []float64{1.5, 0, 0, 0, 0, 3, 0.0001} {
		b := c.Bars[i]
		if b.USD != want || (b.Height > 0) != (want > 0) || b.Height > 0 && b.Height < 1 || math.Abs(b.Y+b.Height-c.Foot) > 1e-9 {
			t.Errorf("day %d: %+v", i, b)
		}
	}
	if l := c.Lines; l[0].Label() != "$5" || l[1].Label() != "$2.50" {
		t.Errorf("the lines are %+v", l)
	}
	if l := Days([]document.CostRow{day(0, 0.001)}, noon, noon).Lines; l[0].Label() != "$0.02" || l[1].Label() != "$0.01" {
		t.Errorf("the lines of little are %+v", l)
	}
	if high := c.Bars[5]; math.Abs(high.Height-bars.Height*3/5) > 1e-9 || c.Bars[0].Height*2 != high.Height {
		t.Errorf("heights are not in proportion: %+v", c.Bars)
	}
}

// TestChartStaysOnItsSheet: whatever the amounts are, no bar is outside, none
// has a place that is no number, and there is no bar of nothing.
func TestChartStaysOnItsSheet(t *testing.T) {
	absurd := []float64{0, 1, -1, 0.01, 1e308, math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), math.Inf(1), math.Inf(-1), -1e308}
	for _, x := range absurd {
		for _, y := range absurd {
			for _, n := range []int{1, 2, 3, 7, 30, 90} {
				c := Days([]document.CostRow{day(0, x), day(1, y)}, noon.AddDate(0, 0, 1-n), noon)
				for _, b := range c.Bars {
					if !(b.X >= 0 && b.Width > 0 && b.X+b.Width < 100.001 && b.Y >= bars.Top-0.001 && b.Height >= 0 && b.Y+b.Height <= c.Foot+0.001) {
						t.Fatalf("%g, %g: %+v", x, y, b)
					}
					if (b.Height > 0) != (b.USD > 0 && !math.IsInf(b.USD, 0)) {
						t.Errorf("%g has the height %g", b.USD, b.Height)
					}
				}
				for _, l := range c.Lines {
					if !(l.USD >= 0) || math.IsInf(l.USD, 0) {
						t.Errorf("%g, %g: a line at %g", x, y, l.USD)
					}
				}
			}
		}
	}
	if c := Days(nil, noon, noon.AddDate(0, 0, -1)); len(c.Bars) > 0 {
		t.Errorf("%+v", c)
	}
}

// TestAmounts: an amount is text that fits, whatever it is.
func TestAmounts(t *testing.T) {
	for amount, want := range map[float64]string{
		0: "$0.00", 0.004: "under $0.01", 12.345: "$12.35", 1234.5: "$1,234.50", -2: "-$2.00", -0.001: "-$0.01", 1e12: "$1e+12", math.Inf(1): "unknown",
		999999999.99: "$999,999,999.99",
	} {
		if got := USD(amount); got != want {
			t.Errorf("%g: %q, want %q", amount, got, want)
		}
	}
	if got := USD(math.NaN()); got != "unknown" {
		t.Error(got)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for seconds, want := range map[float64]string{0: "0.0", 90: "1.5", math.Inf(1): "unknown", -1: "unknown", 1e300: "unknown"} {
		if got := (&Row{CostRow: document.CostRow{Seconds: seconds}}).Minutes(); got != want {
			t.Errorf("%g s: %q", seconds, got)
		}
	}
}

// TestBudgets: what is left is said also where more was spent than there was,
// and a meter never shows less than that.
func TestBudgets(t *testing.T) {
	for _, one := range []struct {
		of, spent, left float64
		percent         float64
		says            string
	}{
		{10, 2.5, 7.5, 25, "$7.50 left of $10.00"},
		{10, 12, -2, 100, "overspent by $2.00 of $10.00"},
		{10, 10, 0, 100, "nothing left of $10.00"},
		{10, -5, 15, 100, "$15.00 left of $10.00"},
		{0, 0, 0, 100, "nothing left of $0.00"},
		{math.NaN(), math.NaN(), math.NaN(), 100, "unknown left of unknown"},
		{1e308, 1, 1e308, 9.999999999999999e-307, "$1e+308 left of $1e+308"},
	} {
		b := budgetOf(document.CostBudget{Of: "project", BudgetUSD: one.of, SpentUSD: one.spent, LeftUSD: one.left}, nil, noon)
		if b.Percent != one.percent || b.Left != one.says || b.Forecast != "" || b.Low() != (one.percent > 90) {
			t.Errorf("%+v: %+v", one, b)
		}
	}
}

// TestForecasts: the date is that of the last seven days with calls, and
// nothing is said where those say nothing.
func TestForecasts(t *testing.T) {
	today := noon.Truncate(24 * time.Hour)
	week := []document.CostRow{day(40, 1000)} // is before the last seven
	for i := range 7 {
		week = append(week, day(3*i+1, 2))
	}
	project := func(left float64) document.CostBudget {
		return document.CostBudget{Of: "project", BudgetUSD: 100, SpentUSD: 100 - left, LeftUSD: left}
	}
	const begins = "At the rate of the last 7 days with calls, $2.00 a day, "
	for name, one := range map[string]struct {
		days   []document.CostRow
		budget document.CostBudget
		want   string
	}{
		"in 11 days":          {week, project(24), begins + "the budget of the project is spent on 12 December 2026."},
		"today took its part": {append(slices.Clip(week), day(0, 2)), project(22), begins + "the budget of the project is spent on 12 December 2026."},
		"today took more":     {append(slices.Clip(week), day(0, 50)), project(22), begins + "the budget of the project is spent on 12 December 2026."},
		"today":               {week, project(1), begins + "the budget of the project is spent today."},
		"far":                 {week, project(1e9), begins + "the budget of the project lasts for more than a year."},
		"one day":             {week[1:2], project(20), "At the rate of the last day with calls, $2.00, the budget of the project is spent on 10 December 2026."},
		"spent":               {week, project(0), ""},
		"overspent":           {week, project(-3), ""},
		"no calls":            {nil, project(10), ""},
		"today alone":         {[]document.CostRow{day(0, 5)}, project(10), ""},
		"free":                {[]document.CostRow{day(1, 0)}, project(10), ""},
		"below zero":          {[]document.CostRow{day(1, -5)}, project(10), ""},
		"no number":           {[]document.CostRow{day(1, math.NaN())}, project(10), ""},
		"without end":         {[]document.CostRow{day(1, math.Inf(1))}, project(10), ""},
		"a day without end":   {[]document.CostRow{day(1, math.Inf(1))}, document.CostBudget{Of: "day", BudgetUSD: 1, LeftUSD: 1}, ""},
		"no number is left":   {week, project(math.NaN()), ""},
		"the day is enough":   {week, document.CostBudget{Of: "day", BudgetUSD: 8, LeftUSD: 8}, begins + "a day takes 25% of its budget."},
		"the day is too much": {week, document.CostBudget{Of: "day", BudgetUSD: 1, LeftUSD: 1}, begins + "the budget of a day is spent before the day ends."},
		"the day is large":    {week, document.CostBudget{Of: "day", BudgetUSD: 1e6, LeftUSD: 1e6}, begins + "a day takes less than 1% of its budget."},
		"of something else":   {week, document.CostBudget{Of: "moon", BudgetUSD: 1, LeftUSD: 1}, ""},
	} {
		if got := forecast(one.budget, one.days, today); got != one.want {
			t.Errorf("%s: %q, want %q", name, got, one.want)
		}
	}
}

// TestPage: the table is of the chosen group, leads to intents only by ids, and
// what is asked for is the days of the page.
func TestPage(t *testing.T) {
	over, of := -2.0, 10.0
	table := document.Costs{
		Rows:   []document.CostRow{{Key: "add-tests", BudgetUSD: &of, LeftUSD: &over}, {Key: "../../board"}, {Key: ""}},
		Others: &document.CostRow{Key: "others", CostUSD: 1}, Total: document.CostRow{CostUSD: 9},
		Budgets: []document.CostBudget{{Of: "day", BudgetUSD: 1, LeftUSD: 1}, {Of: "project", BudgetUSD: 1, LeftUSD: 1}},
	}
	p := Of(Query{7, document.CostsByIntent}, &table, &document.Costs{Rows: []document.CostRow{day(0, 9)}}, noon)
	if p.Rows[0].Intent != "add-tests" || p.Rows[1].Intent+p.Rows[2].Intent != "" {
		t.Errorf("%+v", p.Rows)
	}
	if p.Rows[0].Left() != "overspent by $2.00 of $10.00" || !p.Rows[0].Over() || p.Rows[1].Left() != "" || p.Rows[1].Over() {
		t.Errorf("what is left is %q and %q", p.Rows[0].Left(), p.Rows[1].Left())
	}
	if p.Others.CostUSD != 1 || p.Total.CostUSD != 9 || len(p.Chart.Bars) != 7 || p.Budgets[0].Of != "project" || p.Budgets[0].Name() != "the project" {
		t.Errorf("%+v", p)
	}
	if p := Of(Query{7, document.CostsByModel}, &table, &document.Costs{}, noon); p.Rows[0].Intent != "" {
		t.Errorf("a model leads to an intent: %+v", p.Rows)
	}
	rows := document.Costs{Rows: []document.CostRow{day(1, 1), day(0, 2)}}
	if p := Of(Query{7, document.CostsByDay}, &rows, &rows, noon); p.Rows[0].CostUSD != 2 || rows.Rows[0].CostUSD != 1 {
		t.Errorf("days are %+v", p.Rows)
	}
	if got := Ask(document.CostsByDay, 7, noon).Encode(); got != "by=day&since=2026-11-25T00%3A00%3A00Z&until=2026-12-02T00%3A00%3A00Z" {
		t.Error(got)
	}
}

// TestProjects: the table of several projects has the most expensive first, and
// adds up all that they have.
func TestProjects(t *testing.T) {
	of := func(key string, usd float64, attempts int) document.Costs {
		row := document.CostRow{Key: key, CostUSD: usd, Attempts: attempts, Calls: 2, InputTokens: 3, Seconds: 60}
		return document.Costs{Rows: []document.CostRow{row}, Total: row}
	}
	all := Projects([]document.Costs{of("bank", 1, 1), of("shop", 5, 2), of("attic", 1, 4), {}})
	got := ""
	for _, r := range all.Rows {
		got += r.Key + " "
	}
	if got != "shop attic bank " || all.By != document.CostsByProject {
		t.Errorf("%s rows are %s", all.By, got)
	}
	if sum := all.Total; sum.CostUSD != 7 || sum.Attempts != 7 || sum.Calls != 6 || sum.InputTokens != 9 || sum.Seconds != 180 {
		t.Errorf("all is %+v", sum)
	}
}
