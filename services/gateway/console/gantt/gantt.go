// Package gantt puts the attempts and waits of an intent into rows with bars, as a page shows
// them, and names spans and their colours. It is pure: it knows neither HTML nor the API.
//
// # The axis
//
// An intent is worked on for minutes, and waits for people for days. On an axis in
// proportion, the minutes are too thin to be seen. So each stretch of time in
// which no attempt is under way, and none waits for a worker, is drawn as an
// eighth of all the time with attempts at most. Chart.Shortened says that this was
// done, and whoever shows the chart says so beside it: the lengths of two bars can
// then not be compared by the eye, while the durations of the rows stay exact.
//
// # Rows
//
// A row is an attempt with its wait for a worker, whichever claim it was, or one kind of
// wait of one task or of the intent. Rows are in the order in which their first spans
// begin, so that a reader goes through them from the top to the bottom as time went on.
package gantt

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/document"
)

// Chart is a set of rows over one axis of time.
type Chart struct {
	// From and To are the ends of the axis.
	From, To time.Time
	// Shortened says that times without an attempt are drawn shorter than they were: a weekend in
	// which a person is waited for would leave no room for the minutes in which something was done.
	Shortened bool
	// Rows are by the beginning of their first bar.
	Rows []Row
}

// Row is an attempt with the wait before it, or a kind of wait.
type Row struct {
	// Last is the newest span of the row, by which it is described.
	Last document.Span
	// Waited is how long a worker was waited for, Took how long everything else
	// lasted, both as far as the axis goes.
	Waited, Took time.Duration
	// Open says that it goes on.
	Open bool
	Bars []Bar
}

// Bar is a span on the axis.
type Bar struct {
	document.Span
	// X and Width are in percent of the axis. Each bar has a width at which it can be seen.
	X, Width float64
}

// thinnest is the width of the shortest bar, in percent.
const thinnest = 0.5

// shortest is the share of the time with attempts as which a longer time without is drawn.
const shortest = 0.125

// Of returns the chart of spans on an axis between two times. What goes on ends
// at the end of the axis.
func Of(spans []document.Span, from, to time.Time) Chart {
	c := Chart{From: from, To: to}
	var list []document.Span
	for _, s := range spans {
		if s.From.Before(from) {
			s.From = from
		}
		if !s.To.IsZero() && s.To.Before(s.From) || s.From.After(to) {
			continue
		}
		list = append(list, s)
	}
	axis := c.axis(list)
	type key struct {
		kind       document.SpanKind
		task, step string
		attempt    int
	}
	places := map[key]int{}
	for _, s := range list {
		k := key{s.Kind, string(s.Task), string(s.Step), s.Attempt}
		if s.Kind == document.SpanQueue {
			k.kind = document.SpanAttempt
		}
		i, known := places[k]
		if !known {
			i = len(c.Rows)
			places[k] = i
			c.Rows = append(c.Rows, Row{})
		}
		c.Rows[i].add(s, to, axis)
	}
	return c
}

// add adds a bar to a row.
func (r *Row) add(s document.Span, to time.Time, axis func(time.Time) float64) {
	end := endOf(s, to)
	r.Last, r.Open = s, s.To.IsZero()
	if d := end.Sub(s.From); s.Kind == document.SpanQueue {
		r.Waited += d
	} else {
		r.Took += d
	}
	b := Bar{Span: s, X: axis(s.From)}
	b.Width = max(axis(end)-b.X, thinnest)
	b.X = min(b.X, 100-b.Width)
	r.Bars = append(r.Bars, b)
}

// endOf returns the end of a span on an axis that ends at a time.
func endOf(s document.Span, to time.Time) time.Time {
	if s.To.IsZero() || s.To.After(to) {
		return to
	}
	return s.To
}

// axis returns the place of a time, in percent.
func (c *Chart) axis(list []document.Span) func(time.Time) float64 {
	points := []time.Time{c.From, c.To}
	for _, s := range list {
		points = append(points, s.From, endOf(s, c.To))
	}
	slices.SortFunc(points, time.Time.Compare)
	points = slices.CompactFunc(points, time.Time.Equal)
	busy, total := make([]bool, len(points)), time.Duration(0)
	for i := range points[:len(points)-1] {
		busy[i] = slices.ContainsFunc(list, func(s document.Span) bool {
			works := s.Kind == document.SpanAttempt || s.Kind == document.SpanQueue
			return works && !s.From.After(points[i]) && endOf(s, c.To).After(points[i])
		})
		if busy[i] {
			total += points[i+1].Sub(points[i])
		}
	}
	places := make([]float64, len(points))
	for i := range points[:len(points)-1] {
		d := points[i+1].Sub(points[i])
		if most := time.Duration(float64(total) * shortest); !busy[i] && total > 0 && d > most {
			d, c.Shortened = most, true
		}
		places[i+1] = places[i] + d.Seconds()
	}
	whole := cmp.Or(places[len(places)-1], 1)
	return func(at time.Time) float64 {
		i, _ := slices.BinarySearchFunc(points, at, time.Time.Compare)
		return 100 * places[min(i, len(places)-1)] / whole
	}
}
