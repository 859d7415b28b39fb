// Package costs makes the page of a project's costs out of answers of the API: the
// choice that an address stands for, a chart of days, rows of a table, budgets, and
// forecasts in words. It is pure: it knows neither HTML nor HTTP, and has no clock.
//
// # What is not trusted
//
// Agents report the figures, so one can be absurd: below zero, or larger than all money.
// Each becomes text by [USD], and a place in the chart by [Days], which keep a page
// readable whatever it is. Keys of rows are texts of others; a template shows them as such.
//
// # Days
//
// A day is one of UTC, as in the API. A time of 7 days is today and the six days before it.
package costs

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// Longest is the longest time that a page is about, in days. Forecasts look back as far.
const Longest = 90

// times are the times that a page can be about, in days, and groups what its
// table can have a row for.
var (
	times  = []int{7, 30, Longest}
	groups = []document.CostGroup{
		document.CostsByDay, document.CostsByStep, document.CostsByAgent, document.CostsByModel, document.CostsByRequester,
		document.CostsByType, document.CostsByIntent, document.CostsByProject,
	}
)

// Query has the choices of the address of a page, besides the project.
type Query struct {
	// Days is how many days the page is about, today included.
	Days int
	// By chooses the group of the table: it has a row for each.
	By document.CostGroup
}

// ParseQuery reads the parameters of an address: days, by and project, each
// once and all optional. Its error is a sentence that names the parameter.
func ParseQuery(q url.Values) (Query, error) {
	found := Query{Days: 30, By: document.CostsByDay}
	for name, values := range q {
		if !slices.Contains([]string{"project", "days", "by"}, name) {
			return found, fmt.Errorf("costs have no parameter %.40q: there are project, days and by", name)
		}
		if len(values) > 1 {
			return found, fmt.Errorf("%s is given twice", name)
		}
	}
	if text := q.Get("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(times, n) || text != strconv.Itoa(n) {
			return found, fmt.Errorf("days: is %.40q; it can be 7, 30 or %d", text, Longest)
		}
		found.Days = n
	}
	if text := q.Get("by"); text != "" {
		if !slices.Contains(groups, document.CostGroup(text)) {
			return found, fmt.Errorf("by: is %.40q; it can be day, step, agent, model, requester, type, intent or project", text)
		}
		found.By = document.CostGroup(text)
	}
	return found, nil
}

// Values returns the query as parameters of an address.
func (q Query) Values(p forge.ProjectID) url.Values {
	return url.Values{"project": {string(p)}, "days": {strconv.Itoa(q.Days)}, "by": {string(q.By)}}
}

// Ask returns the parameters by which the API is asked for a table: from the
// beginning of the first of some days to the end of today, so that a clock that
// is ahead adds to no day that the page does not have.
func Ask(by document.CostGroup, days int, now time.Time) url.Values {
	today := dayOf(now)
	return url.Values{
		"by":    {string(by)},
		"since": {today.AddDate(0, 0, 1-days).Format(time.RFC3339)},
		"until": {today.AddDate(0, 0, 1).Format(time.RFC3339)},
	}
}

// dayOf returns the beginning of a day.
func dayOf(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }

// Choice is a link to the page with one parameter changed.
type Choice struct {
	Name   string
	Values url.Values
	// Here says that the page is this one.
	Here bool
}

// Times returns links to the times that a page can be about.
func (q Query) Times(p forge.ProjectID) (list []Choice) {
	for _, n := range times {
		to := Query{n, q.By}
		list = append(list, Choice{fmt.Sprintf("%d days", n), to.Values(p), to == q})
	}
	return list
}

// Groups returns links to the groups that the table can be of.
func (q Query) Groups(p forge.ProjectID) (list []Choice) {
	for _, by := range groups {
		to := Query{q.Days, by}
		list = append(list, Choice{string(by), to.Values(p), to == q})
	}
	return list
}

// Page has the figures of a page.
type Page struct {
	Query
	// From and To are the first and the last day.
	From, To time.Time
	Chart    Chart
	// Spent adds up the days of the chart, which is of one project, also where
	// the table is of several.
	Spent float64
	Rows  []Row
	// Others adds up the rows that there is no room for; nil if there is room for all.
	Others  *Row
	Total   Row
	Budgets []Budget
}

// Row is one of the table.
type Row struct {
	document.CostRow
	// Intent is the id of the intent that the row is about; empty if it is
	// about none, or its key is no id.
	Intent forge.IntentID
}

// Left says in words what is left of the budget of a row; empty without one.
func (r *Row) Left() string {
	if r.BudgetUSD == nil || r.LeftUSD == nil {
		return ""
	}
	return left(*r.LeftUSD, *r.BudgetUSD)
}

// Over says that more was spent than the budget of a row allows.
func (r *Row) Over() bool { return r.LeftUSD != nil && *r.LeftUSD < 0 }

// Minutes adds up the durations of attempts, in minutes.
func (r *Row) Minutes() string {
	if m := r.Seconds / 60; m >= 0 && m < 1e9 {
		return fmt.Sprintf("%.1f", m)
	}
	return "unknown"
}

// Projects returns the table of several projects, of the answers by project of
// each: the most expensive first, with the sum of all.
func Projects(list []document.Costs) document.Costs {
	all := document.Costs{By: document.CostsByProject, Rows: []document.CostRow{}, Total: document.CostRow{Key: "total"}}
	for i := range list {
		all.Since, all.Until = list[i].Since, list[i].Until
		all.Rows = append(all.Rows, list[i].Rows...)
		all.Total.Merge(&list[i].Total)
	}
	slices.SortStableFunc(all.Rows, func(a, b document.CostRow) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(a.Key, b.Key))
	})
	all.Bound()
	return all
}

// Of makes a page. table is the answer by the query's group for its days, days the
// one by day for the [Longest] time, from which the chart and forecasts are made.
func Of(q Query, table, days *document.Costs, now time.Time) Page {
	today := dayOf(now)
	p := Page{Query: q, From: today.AddDate(0, 0, 1-q.Days), To: today}
	p.Chart = Days(days.Rows, p.From, p.To)
	for _, b := range p.Chart.Bars {
		p.Spent += b.USD
	}
	for i := range table.Rows {
		r := Row{CostRow: table.Rows[i]}
		if id, err := forge.ParseIntentID(r.Key); err == nil && q.By == document.CostsByIntent {
			r.Intent = id
		}
		p.Rows = append(p.Rows, r)
	}
	if q.By == document.CostsByDay { // a table has the newest first, as other lists of the console
		slices.Reverse(p.Rows)
	}
	if table.Others != nil {
		p.Others = &Row{CostRow: *table.Others}
	}
	p.Total = Row{CostRow: table.Total}
	for _, b := range table.Budgets {
		p.Budgets = append(p.Budgets, budgetOf(b, days.Rows, today))
	}
	slices.SortStableFunc(p.Budgets, func(a, b Budget) int { return cmp.Compare(b.Of, a.Of) }) // that of the project first
	return p
}
