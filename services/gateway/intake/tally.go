package intake

import (
	"math"
	"strings"
	"time"
)

// Tally counts events that were let in, for the limits of a day. Its zero value has none.
//
// Each event counts once under each key, however often it is added: with the
// most dollars that were noted for it there. Sums are of whole millionths of a
// dollar, so that no order of adding makes another sum.
type Tally struct {
	keys map[string]*sum
	// newest is the newest day that was added; keys of days more than one before it are forgotten.
	newest time.Time
}

// sum has the events that count under one key.
type sum struct {
	events map[string]int64
	micros int64
}

// Add counts an event under some keys. at is when it was noted, by the clock of the store,
// which all gateways share: a key of another day, from a gateway whose own clock is wrong
// or that midnight overtook, counts for nothing, and its gateway must not let the event in.
func (t *Tally) Add(event string, at time.Time, counts []Count) {
	day := at.UTC().Truncate(24 * time.Hour)
	if t.keys == nil {
		t.keys = map[string]*sum{}
	}
	if day.After(t.newest) {
		t.newest = day
		t.forget(day.AddDate(0, 0, -1))
	}
	for _, c := range counts {
		if !strings.HasPrefix(c.Key, dayOf(at)) {
			continue
		}
		s := t.keys[c.Key]
		if s == nil {
			s = &sum{events: map[string]int64{}}
			t.keys[c.Key] = s
		}
		before := s.events[event]
		s.events[event] = max(before, micros(c.USD))
		s.micros += s.events[event] - before
	}
}

// forget removes the keys of days before a day.
func (t *Tally) forget(before time.Time) {
	for key := range t.keys {
		if key < dayOf(before) {
			delete(t.keys, key)
		}
	}
}

// Used tells the count and the dollars of a key, an event itself left out.
func (t *Tally) Used(event string) Used {
	return func(key string) (count int, usd float64) {
		s := t.keys[key]
		if s == nil {
			return 0, 0
		}
		count = len(s.events)
		own, counted := s.events[event]
		if counted {
			count--
		}
		return count, float64(s.micros-own) / perDollar
	}
}

// Has reports whether an event is counted under all these keys, with no less than their dollars.
func (t *Tally) Has(event string, counts []Count) bool {
	for _, c := range counts {
		s := t.keys[c.Key]
		if s == nil {
			return false
		}
		if usd, counted := s.events[event]; !counted || usd < micros(c.USD) {
			return false
		}
	}
	return true
}

// perDollar is the number of parts of a dollar that are counted.
const perDollar = 1_000_000

// micros returns dollars in parts. What is more than nothing is one part at least.
func micros(usd float64) int64 {
	n := int64(math.Round(usd * perDollar))
	if usd > 0 {
		return max(n, 1)
	}
	return n
}

// dayOf returns the beginning of all keys that count on the day of a time.
func dayOf(at time.Time) string { return at.UTC().Format(time.DateOnly) + " " }
