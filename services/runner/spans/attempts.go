// Package spans tells from the records of a machine when its attempts were
// under way, and how long each waited for a worker.
//
// A span begins and ends where the journal says so. What a worker says of its
// own times counts as far as it lies between the command and the answer, so
// that a clock that is wrong puts nothing where it cannot have been.
package spans

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// The outcomes of spans that ended without a result.
const (
	// Moved is that of an attempt that was given to another worker, Void that
	// of one that is not needed any more.
	Moved = "given to another worker"
	Void  = "not needed any more"
)

// Attempts follows the attempts of one machine. It is not safe for concurrent use.
type Attempts struct {
	// Begin, if not nil, is told of each span when it begins, and Ended when it
	// has ended. The span is the same one.
	Begin, Ended func(*document.Span)

	// open has the spans of commands that were issued, by attempts without a
	// claim: of each the wait for a worker, and then the attempt itself.
	open map[forge.Attempt]*document.Span
}

// begin begins a span.
func (t *Attempts) begin(s document.Span) *document.Span {
	if t.Begin != nil {
		t.Begin(&s)
	}
	return &s
}

// end ends a span.
func (t *Attempts) end(s *document.Span, at time.Time, outcome string) {
	s.To, s.Outcome = at, outcome
	if t.Ended != nil {
		t.Ended(s)
	}
}

// Within returns a time of a worker's clock, which may be wrong, as one between
// two that the journal knows.
func Within(at, from, to time.Time) time.Time {
	if to.Before(from) {
		to = from
	}
	switch at = at.UTC(); {
	case at.Before(from):
		return from
	case at.After(to):
		return to
	}
	return at
}

// Effects begins a span for each attempt that a record issued, and ends those
// of attempts that it gave up. A command that is issued once more under the
// same claim is a repetition after a crash, and changes nothing.
func (t *Attempts) Effects(e *forge.Effects, now time.Time) {
	for i := range e.Commands {
		a := e.Commands[i].Attempt
		claim := a.Claim
		a.Claim = 0
		if was := t.open[a]; was != nil {
			if was.Claim == claim { // it is repeated
				continue
			}
			t.end(was, now, Moved)
		}
		if t.open == nil {
			t.open = map[forge.Attempt]*document.Span{}
		}
		t.open[a] = t.begin(document.Span{
			Kind: document.SpanQueue, Task: a.Task, Step: a.Step, Attempt: a.Number, Claim: claim, From: now, Detail: "no worker has begun it",
		})
	}
	for _, a := range e.Cancels {
		claim := a.Claim
		a.Claim = 0
		if was := t.open[a]; was != nil && was.Claim == claim { // else the same record gave it to another worker
			t.end(was, now, Void)
			delete(t.open, a)
		}
	}
}

// Result ends the wait for a worker and, unless the worker reports its start alone, the attempt,
// and reports whether it did that. Reports of claims that were given to another worker add nothing.
func (t *Attempts) Result(r *forge.Result, at time.Time, outcome string) bool {
	a := r.Attempt
	a.Claim = 0
	s := t.open[a]
	if s == nil || s.Claim != r.Attempt.Claim { // one that was given up
		return false
	}
	if s.Kind == document.SpanQueue {
		began := Within(r.StartedAt, s.From, at)
		s.Detail = "until a worker began it"
		t.end(s, began, "")
		s = t.begin(document.Span{
			Kind: document.SpanAttempt, Task: a.Task, Step: a.Step, Attempt: a.Number, Claim: r.Attempt.Claim, From: began, Detail: "by " + string(r.Replica),
		})
		t.open[a] = s
	}
	if r.IsStart() {
		return false
	}
	t.end(s, Within(s.From.Add(r.Duration), s.From, at), outcome)
	delete(t.open, a)
	return true
}
