package mergequeue

import (
	"fmt"
	"strings"
	"time"
)

// maxPlaces bounds the changes whose places are told: the summary of a project
// is part of each of its records, so what is said of all of a long queue would
// be written as often as the queue has changes.
const maxPlaces = 32

// Places says in words, for a person, where the first changes are in the queue
// and what they wait for, by their tasks. It is nil if the queue is empty.
//
// The words are of the state alone, and the same whenever it is folded anew. There is no estimate
// among them: how long a verify takes depends on the workers, of which the queue knows nothing.
func (s *State) Places() map[string]string {
	places := map[string]string{}
	n := 0
	if m := s.Current; m != nil {
		n++
		places[string(m.Task)] = m.words()
	}
	for _, q := range s.Queued[:min(len(s.Queued), maxPlaces)] {
		n++
		places[string(q.Task)] = words(s, q, n)
	}
	for _, q := range s.Proposed[:min(len(s.Proposed), maxPlaces)] {
		places[string(q.Task)] = s.Tasks[q.Intent][q.Task].Pull.words()
	}
	if len(places) == 0 {
		return nil
	}
	return places
}

// words says how far the merge that is under way is.
func (m *Merge) words() string {
	switch {
	case m.Stopped:
		return "first in the merge queue, waits for the origin"
	case m.IsPaused():
		return "first in the merge queue, tried again after a failure"
	}
	return "is being merged" + m.moved()
}

// words says that a request is the n-th in the queue, and what it waits for.
func words(s *State, q *Request, n int) string {
	return fmt.Sprintf("%s in the merge queue%s", ordinal(n), s.waitsFor(q)+q.moved())
}

// words says what the pull request waits for.
func (p *Pull) words() string {
	switch {
	case !p.RetryAt.IsZero():
		return "the forge is asked again at " + p.RetryAt.UTC().Format(time.DateTime) + " UTC"
	case p.Opening && p.Number == 0:
		return "its pull request is opened"
	case p.Opening || p.Seen == nil:
		return fmt.Sprintf("pull request %d is brought up to date", p.Number)
	}
	return fmt.Sprintf("pull request %d %s", p.Number, p.waitWords())
}

// waitsFor says how far the trial of a request is, or who holds a file of it. A
// change that has stopped is not said to be at fault: it may be one ahead of it.
func (s *State) waitsFor(q *Request) string {
	for _, l := range s.Locks {
		if l.Task != q.Task && (l.AllFiles || overlap(l.Files, q.Files)) && !s.mayMerge(q) {
			return fmt.Sprintf(", waits for %s, which goes first after a conflict", l.Task)
		}
	}
	var on string
	if q.Car != nil && len(q.Car.Ahead) > 0 {
		on = " on top of " + tasks(q.Car.Ahead)
	}
	switch {
	case q.Car.isDoubted():
		return ", did not pass" + on + " and is tried once more"
	case q.Car.is(Riding):
		return ", is tried together with later ones" + on
	case q.Car.is(Trying) && len(q.Car.Riders) > 0:
		return ", is tried, and decides about those before it in its batch," + on
	case q.Car.is(Trying):
		return ", is tried" + on
	case q.Car.is(Passed) && q.Car.Found.Together != "":
		return ", passed together with later ones, and not by itself," + on
	case q.Car.is(Passed):
		return ", passed" + on
	case q.Car.within() > 1:
		return ", its batch did not pass and is tried in smaller ones"
	case q.Car.is(Stopped):
		return ", did not pass" + on + "; its merge finds out why"
	}
	return ""
}

// tasks names the first few of a list: the last of them is the one that matters
// least, because it is the first to be put together anew.
func tasks(list []Ref) string {
	const most = 3
	var names []string
	for _, r := range list[:min(len(list), most)] {
		names = append(names, string(r.Task))
	}
	if more := len(list) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// ordinal returns a number as a word, as far as there are short ones.
func ordinal(n int) string {
	words := []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}
	if n <= len(words) {
		return words[n-1]
	}
	return fmt.Sprintf("number %d", n)
}
