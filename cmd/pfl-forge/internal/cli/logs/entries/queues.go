package entries

import (
	"iter"
	"slices"
	"time"
)

// queues hold the entries that are not shown yet. Each is in the order of time: the first
// has decisions, the others a transcript each.
// The first one is always there, also when it is empty.
type queues [][]Entry

// decided adds a decision at its place in time, which is nearly always the end.
// Of the same time those that came first stay first.
func (q *queues) decided(e Entry) {
	all := *q
	at, _ := slices.BinarySearchFunc(all[0], e.At.Add(1), func(w Entry, t time.Time) int { return w.At.Compare(t) })
	all[0] = slices.Insert(all[0], at, e)
}

// add adds a transcript.
// It keeps the list, and sorts it in place.
func (q *queues) add(list []Entry) {
	slices.SortStableFunc(list, func(a, b Entry) int { return a.At.Compare(b.At) })
	*q = append(*q, list)
}

// take takes out entries in the order of time, as long as that of the next is wanted.
// An entry that was yielded is gone. Queues of transcripts that are empty then are removed.
func (q *queues) take(wanted func(time.Time) bool) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for {
			first := q.first()
			if first == nil || !wanted((*first)[0].At) {
				break
			}
			e := (*first)[0]
			if *first = (*first)[1:]; !yield(e) {
				break
			}
		}
		*q = append((*q)[:1], slices.DeleteFunc((*q)[1:], func(list []Entry) bool { return len(list) == 0 })...)
	}
}

// first returns the queue with the oldest entry, nil if nothing waits.
func (q *queues) first() *[]Entry {
	var first *[]Entry
	for i, list := range *q {
		if len(list) > 0 && (first == nil || list[0].At.Before((*first)[0].At)) {
			first = &(*q)[i]
		}
	}
	return first
}
