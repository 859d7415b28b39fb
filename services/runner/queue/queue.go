// Package queue tells the merge queue of a project, with estimates of when its changes are merged.
//
// Where a change is, the rules know, and their state alone is asked. How long things take
// they do not: a [Reader] takes that from the records of the project, in which each merge and
// each trial says how long it took. An estimate is no promise and nothing is decided by it.
package queue

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
)

// samples is how many of the last trials, and of the last merges, an estimate is made of.
const samples = 20

// Reader remembers of the records of a project how long trials and merges took.
// The zero value has seen none. It is not safe for concurrent use.
type Reader struct {
	// trials and merges have the durations of the last ones, the newest last.
	trials, merges []time.Duration
	// began says when the attempts under way were issued.
	began map[forge.Attempt]time.Time
}

// Add takes the next record of the project.
func (r *Reader) Add(rec *forge.Record) {
	for i := range rec.Events {
		m := forge.As[*forge.Result](rec.Events[i].Message)
		if m == nil || m.IsStart() || m.Attempt.Step != forge.StepMerge {
			continue
		}
		delete(r.began, m.Attempt)
		out := forge.As[*forge.MergeResult](m.Output)
		switch {
		case out == nil || m.Duration <= 0:
		case out.Outcome == forge.MergeTried:
			r.trials = newest(r.trials, m.Duration)
		case out.Outcome == forge.MergeDone:
			r.merges = newest(r.merges, m.Duration)
		}
	}
	for _, a := range rec.Effects.Cancels {
		delete(r.began, a)
	}
	if len(rec.Events) == 0 {
		return
	}
	at := rec.Events[len(rec.Events)-1].At
	for i := range rec.Effects.Commands {
		a := rec.Effects.Commands[i].Attempt
		if _, known := r.began[a]; known || a.Step != forge.StepMerge {
			continue
		}
		if r.began == nil {
			r.began = map[forge.Attempt]time.Time{}
		}
		r.began[a] = at
	}
}

// newest adds a duration to the last ones.
func newest(list []time.Duration, d time.Duration) []time.Duration {
	if list = append(list, d); len(list) > samples {
		list = slices.Delete(list, 0, 1)
	}
	return list
}

// median returns the median of durations, the lower one of two; 0 for none.
func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[(len(list)-1)/2]
}

// Read returns the queue. The summary is that of the project. There are no
// estimates while the project is held up by anything, since it is not known for
// how long, none before a merge has been seen, and none of a change that is
// proposed as a pull request: when it is merged is up to the forge.
func (r *Reader) Read(s *forge.Summary, l mergequeue.Line, now time.Time) document.Queue {
	q := document.Queue{
		Paused: s.Waiting == forge.WaitingPaused, Facts: document.FactsOf(s, now), Parallel: l.Parallel, Batch: l.Batch,
		Changes: []document.QueuedChange{},
	}
	for i := range l.Places {
		p := &l.Places[i]
		q.Changes = append(q.Changes, document.QueuedChange{
			Intent: p.Intent, Task: p.Task, Position: p.Position, State: stateOf(p), Words: p.Words, On: p.On, With: p.With,
		})
	}
	pace := Pace{Trial: median(r.trials), Merge: median(r.merges)}
	held := slices.ContainsFunc(q.Facts, func(f document.Fact) bool {
		return f.Fact == forge.FailOrigin || f.Fact == forge.FailPush || f.Fact == forge.FailBase
	})
	pushed := slices.ContainsFunc(l.Places, func(p mergequeue.Place) bool { return !p.Proposes })
	if q.Paused || l.Held || held || pace.Merge == 0 || !pushed {
		return q
	}
	q.Basis = &document.QueueBasis{
		Trials: len(r.trials), TrialSeconds: pace.Trial.Seconds(), Merges: len(r.merges), MergeSeconds: pace.Merge.Seconds(),
	}
	for i, left := range pace.Left(l, r.elapsed(now)) {
		if !l.Places[i].Proposes {
			seconds := int(left.Round(time.Second) / time.Second)
			q.Changes[i].Seconds = &seconds
		}
	}
	return q
}

// Of reduces a queue to the changes of one intent, and tells of the pull requests of its tasks.
func Of(q *document.Queue, l mergequeue.Line, id forge.IntentID) {
	q.Changes = slices.DeleteFunc(q.Changes, func(c document.QueuedChange) bool { return c.Intent != id })
	for task, seen := range l.Seen(id) {
		q.Pulls = append(q.Pulls, document.QueuedPull{Task: task, Number: seen.Number, State: seen.State, URL: address(seen.URL)})
	}
	slices.SortFunc(q.Pulls, func(a, b document.QueuedPull) int { return strings.Compare(string(a.Task), string(b.Task)) })
}

// maxAddress bounds an address, in bytes.
const maxAddress = 1000

// address returns an address that a forge has told, if it is one of the web and
// nothing else: people open it. It is empty otherwise.
func address(text string) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxAddress || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return ""
	}
	return u.String()
}

// elapsed returns a function that says for how long an attempt has been under
// way; 0 if that is not known.
func (r *Reader) elapsed(now time.Time) func(forge.Attempt) time.Duration {
	return func(a forge.Attempt) time.Duration {
		if at, known := r.began[a]; known {
			return max(now.Sub(at), 0)
		}
		return 0
	}
}

// stateOf returns the state of a change as readers are told it.
func stateOf(p *mergequeue.Place) document.QueueState {
	switch {
	case p.Position == 0:
		return document.QueuePull
	case p.Merging:
		return document.QueueMerging
	}
	switch p.Trial {
	case mergequeue.Trying:
		return document.QueueTrying
	case mergequeue.Riding:
		return document.QueueRiding
	case mergequeue.Passed:
		return document.QueuePassed
	case mergequeue.Stopped:
		return document.QueueStopped
	case mergequeue.Untested, "":
	}
	return document.QueueQueued
}
