// Package health makes the page of a project's health out of an answer of the
// API: charts by week with the figures of each, and tables in words. It is
// pure: it knows neither HTML nor HTTP, and has no clock.
//
// # What is not trusted
//
// Names of commands are texts of others; a template shows them as such. Figures
// are those of a runner, and a figure that is absurd becomes a place in the
// chart by package bars, which keeps a page readable whatever it is.
package health

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/bars"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/gantt"
)

// times are the times that a page can be about, in weeks.
var times = []int{4, figures.HealthWeeks, figures.MostHealthWeeks}

// waits are the kinds of waits that a chart can be of, with their names.
var waits = []document.SpanKind{
	document.SpanQueue, document.SpanMerge, document.SpanPerson, document.SpanBudget, document.SpanLocks, document.SpanForge,
}

// Query has the choices of the address of a page, besides the project.
type Query struct {
	// Weeks is how many weeks the page is about, the present one included.
	Weeks int
	// Of names the durations of the chart: a kind of waits, or a step.
	Of string
}

// ParseQuery reads the parameters of an address: weeks, of and project, each
// once and all optional. Its error is a sentence that names the parameter.
func ParseQuery(q url.Values) (Query, error) {
	found := Query{Weeks: figures.HealthWeeks, Of: string(document.SpanQueue)}
	for name, values := range q {
		if !slices.Contains([]string{"project", "weeks", "of"}, name) {
			return found, fmt.Errorf("health has no parameter %.40q: there are project, weeks and of", name)
		}
		if len(values) > 1 {
			return found, fmt.Errorf("%s is given twice", name)
		}
	}
	if text := q.Get("weeks"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(times, n) || text != strconv.Itoa(n) {
			return found, fmt.Errorf("weeks: is %.40q; it can be 4, %d or %d", text, figures.HealthWeeks, figures.MostHealthWeeks)
		}
		found.Weeks = n
	}
	if text := q.Get("of"); text != "" {
		if text != figures.TrialKey && !slices.Contains(waits, document.SpanKind(text)) && !slices.Contains(forge.Steps(), forge.Step(text)) {
			return found, fmt.Errorf("of: is %.40q, which is neither a step nor a kind of waits", text)
		}
		found.Of = text
	}
	return found, nil
}

// Values returns the query as parameters of an address.
func (q Query) Values(p forge.ProjectID) url.Values {
	return url.Values{"project": {string(p)}, "weeks": {strconv.Itoa(q.Weeks)}, "of": {q.Of}}
}

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
		to := Query{n, q.Of}
		list = append(list, Choice{fmt.Sprintf("%d weeks", n), to.Values(p), to == q})
	}
	return list
}

// Page has the figures of a page.
type Page struct {
	Query
	// Weeks are the newest first, as tables have them, and Total is of all.
	Weeks []Week
	Total Week
	// Ends is the chart of how runs ended, Lasts that of the durations that are chosen.
	Ends, Lasts Chart
	// Waits and Steps are over all weeks.
	Waits, Steps []Duration
	Checks       []figures.CheckStat
	LeftOut      int
}

// Week is one with its shares in words.
type Week struct {
	figures.HealthWeek
	// Chosen are the durations of the week that the chart is of.
	Chosen Duration
}

// Succeeded returns the share of the runs that are done among those that ended; empty if none did.
func (w *Week) Succeeded() string { return share(w.Done, w.HealthWeek.Ended()) }

// Again returns the share of the changes that were made again; empty if none was made.
func (w *Week) Again() string { return share(w.MadeAgain, w.Made) }

// share returns a share in percent.
func share(n, of int) string {
	if of <= 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", (100*n+of/2)/of)
}

// Flaky returns the share of changes for which a command was flaky.
func Flaky(c figures.CheckStat) string { return share(c.Flaky, c.Verified) }

// Duration has percentiles in words.
type Duration struct {
	figures.Durations
	// Name is the key in words, and To the link to its chart.
	Name string
	To   Choice
}

// Words returns a duration of so many seconds in words; empty for none.
func Words(seconds float64) string {
	if !(seconds > 0) || seconds > 1e9 {
		return ""
	}
	return gantt.Lasted(time.Duration(seconds * float64(time.Second)))
}

// Name returns a step, or a kind of waits, in words.
func Name(key string) string {
	switch document.SpanKind(key) {
	case document.SpanQueue:
		return "a worker"
	case document.SpanMerge:
		return "the merge queue"
	case document.SpanPerson:
		return "a person"
	case document.SpanBudget:
		return "a budget"
	case document.SpanLocks:
		return "file locks"
	case document.SpanForge:
		return "a pull request"
	case document.SpanAttempt, document.SpanOthers, document.SpanLater:
	}
	return strings.ReplaceAll(key, "_", " ")
}

// IsWait reports whether the chart is of waits.
func (q Query) IsWait() bool { return slices.Contains(waits, document.SpanKind(q.Of)) }

// Title says what the chart of durations is of.
func (q Query) Title() string {
	if q.IsWait() {
		return "How long " + Name(q.Of) + " was waited for"
	}
	return "How long " + Name(q.Of) + " took"
}

// Of makes a page of an answer.
func Of(q Query, p forge.ProjectID, h *figures.Health) Page {
	page := Page{Query: q, Total: Week{HealthWeek: h.Total}, Checks: h.Checks, LeftOut: h.LeftOut}
	page.Waits, page.Steps = q.durations(p, h.Total.Waits), q.durations(p, h.Total.Steps)
	for i := range h.Weeks {
		page.Weeks = append(page.Weeks, Week{h.Weeks[i], q.chosen(&h.Weeks[i])})
	}
	page.Total.Chosen = q.chosen(&h.Total)
	page.Ends, page.Lasts = ends(page.Weeks), lasts(page.Weeks)
	slices.Reverse(page.Weeks)
	return page
}

// durations returns percentiles with links to their charts.
func (q Query) durations(p forge.ProjectID, list []figures.Durations) (named []Duration) {
	for _, d := range list {
		to := Query{q.Weeks, d.Key}
		named = append(named, Duration{d, Name(d.Key), Choice{Name(d.Key), to.Values(p), to == q}})
	}
	return named
}

// chosen returns the durations of a week that the chart is of.
func (q Query) chosen(w *figures.HealthWeek) Duration {
	for _, d := range slices.Concat(w.Steps, w.Waits) {
		if d.Key == q.Of {
			return Duration{Durations: d}
		}
	}
	return Duration{Durations: figures.Durations{Key: q.Of}}
}

// Chart has bars for each week, from the oldest.
type Chart struct {
	Bars  []Bar
	Lines []Line
	Marks []Mark
	// Foot is where the line of zero is, in pixels from the top, and Height
	// that of the whole drawing.
	Foot, Height float64
	// Highest says in words which value is the highest; empty if there is none.
	Highest string
}

// Bar is a value of a week. X and Width are in percent of the chart's width, Y
// and Height in pixels.
type Bar struct {
	// Class says what it is of, and Says it in words.
	Class, Says         string
	X, Width, Y, Height float64
}

// Line is a value that is drawn across the chart.
type Line struct {
	Label string
	Y     float64
}

// Mark names a week below its bars. X is in percent, and Anchor as SVG has it.
type Mark struct {
	Week, Anchor string
	X            float64
}

// newChart returns a chart with lines up to a value, in words.
func newChart(weeks []Week, most float64, words func(float64) string) (c Chart, top float64) {
	c = Chart{Foot: bars.Top + bars.Height, Height: bars.Top + bars.Height + bars.Below}
	if most > 0 {
		top = bars.Round(most)
		c.Lines = []Line{{words(top), bars.Top}, {words(top / 2), bars.Top + bars.Height/2}}
		c.Highest = words(most)
	}
	if n := len(weeks); n > 0 {
		c.Marks = []Mark{{weeks[0].Week, "start", 0}}
		if n > 1 {
			c.Marks = append(c.Marks, Mark{weeks[n-1].Week, "end", 100})
		}
	}
	return c, top
}

// ends makes the chart of how runs ended: those that are done below, the others above them.
func ends(weeks []Week) Chart {
	most := 0
	for i := range weeks {
		most = max(most, weeks[i].Ended())
	}
	c, top := newChart(weeks, float64(most), func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) })
	step := 100 / float64(max(len(weeks), 1))
	for i := range weeks {
		w := &weeks[i]
		done, others := bars.Tall(float64(w.Done), top), bars.Tall(float64(w.Ended()-w.Done), top)
		x, width := (float64(i)+0.2)*step, 0.6*step
		if done > 0 {
			c.Bars = append(c.Bars, Bar{"good", fmt.Sprintf("week of %s: %d done", w.Week, w.Done), x, width, c.Foot - done, done})
		}
		if others > 0 {
			y := max(c.Foot-done-others, 0)
			c.Bars = append(c.Bars, Bar{"bad", fmt.Sprintf("week of %s: %d ended otherwise", w.Week, w.Ended()-w.Done), x, width, y, others})
		}
	}
	return c
}

// lasts makes the chart of the percentiles of durations, three bars for each week.
func lasts(weeks []Week) Chart {
	most := 0.0
	for i := range weeks {
		most = max(most, bars.Drawn(weeks[i].Chosen.P99))
	}
	c, top := newChart(weeks, most, Words)
	step := 100 / float64(max(len(weeks), 1))
	for i := range weeks {
		d := weeks[i].Chosen
		for n, one := range []struct {
			class   string
			seconds float64
		}{{"p50", d.P50}, {"p90", d.P90}, {"p99", d.P99}} {
			tall := bars.Tall(one.seconds, top)
			if d.Count == 0 || tall == 0 {
				continue
			}
			c.Bars = append(c.Bars, Bar{
				one.class, fmt.Sprintf("week of %s, %s of %d: %s", weeks[i].Week, one.class, d.Count, Words(one.seconds)),
				(float64(i) + 0.15 + 0.24*float64(n)) * step, 0.22 * step, c.Foot - tall, tall,
			})
		}
	}
	return c
}
