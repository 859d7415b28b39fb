package health

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/document/figures"
)

// week has the figures of one week.
type week struct {
	figures.HealthWeek

	steps, waits map[string][]time.Duration
	book         Book
}

// weekOf returns the Monday of a time, in UTC.
func weekOf(at time.Time) time.Time {
	day := at.UTC().Truncate(24 * time.Hour)
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

// in returns the week of a time.
func (l *Ledger) in(at time.Time) *week {
	monday := weekOf(at)
	if l.weeks == nil {
		l.weeks = map[time.Time]*week{}
	}
	w := l.weeks[monday]
	if w == nil {
		w = &week{steps: map[string][]time.Duration{}, waits: map[string][]time.Duration{}}
		l.weeks[monday] = w
	}
	return w
}

// forget drops weeks that are too old. It is seldom called in vain: there is at
// most one week more than are kept, unless a clock was far ahead.
func (l *Ledger) forget(now time.Time) {
	if l.Keep == 0 || len(l.weeks) <= l.Keep {
		return
	}
	oldest := weekOf(now).AddDate(0, 0, -7*(l.Keep-1))
	maps.DeleteFunc(l.weeks, func(monday time.Time, _ *week) bool { return monday.Before(oldest) })
}

// Health returns the figures of some weeks, up to the present one.
func (l *Ledger) Health(r figures.HealthRequest, now time.Time) figures.Health {
	n := cmp.Or(r.Weeks, figures.HealthWeeks)
	all := &week{steps: map[string][]time.Duration{}, waits: map[string][]time.Duration{}}
	h := figures.Health{Weeks: make([]figures.HealthWeek, 0, n)}
	for i := range n {
		monday := weekOf(now).AddDate(0, 0, 7*(i+1-n))
		one := l.weeks[monday]
		if one == nil {
			one = &week{}
		}
		told := one.figures()
		told.Week = monday.Format(time.DateOnly)
		h.Weeks = append(h.Weeks, told)
		all.add(one)
	}
	h.Total, h.Checks = all.figures(), all.book.Rows()
	return h
}

// add adds the figures of another week.
func (w *week) add(o *week) {
	for _, one := range []struct{ into, from *int }{
		{&w.Done, &o.Done},
		{&w.Failed, &o.Failed},
		{&w.Rejected, &o.Rejected},
		{&w.Cancelled, &o.Cancelled},
		{&w.Made, &o.Made},
		{&w.MadeAgain, &o.MadeAgain},
		{&w.ReviewsRejected, &o.ReviewsRejected},
		{&w.VerifyFailed, &o.VerifyFailed},
		{&w.Conflicts, &o.Conflicts},
	} {
		*one.into += *one.from
	}
	for key, list := range o.steps {
		w.steps[key] = append(w.steps[key], list...)
	}
	for key, list := range o.waits {
		w.waits[key] = append(w.waits[key], list...)
	}
	w.book.Merge(&o.book)
}

// figures returns the figures of a week.
func (w *week) figures() figures.HealthWeek {
	h := w.HealthWeek
	h.Steps, h.Waits = percentiles(w.steps), percentiles(w.waits)
	return h
}

// percentiles returns those of each key, by their names.
func percentiles(by map[string][]time.Duration) []figures.Durations {
	list := []figures.Durations{}
	for key, took := range by {
		list = append(list, figures.DurationsOf(key, took))
	}
	slices.SortFunc(list, func(a, b figures.Durations) int { return strings.Compare(a.Key, b.Key) })
	return list
}
