package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Timeline returns all records of an intent, with its attempts and waits, by their beginning.
//
// A span begins and ends where the journal says so. What a worker says of its own times counts as far as it lies between
// the command and the answer, so that a clock that is wrong puts nothing where it cannot have been.
func Timeline(key forge.Key, records []forge.Record) document.Timeline {
	f := NewFilm(key, false)
	c := clock{attempts: map[forge.Attempt]*document.Span{}, waits: map[wait]*document.Span{}}
	for i := range records {
		rec := &records[i]
		f.Add(rec)
		if len(rec.Events) == 0 {
			continue
		}
		c.now = rec.Events[len(rec.Events)-1].At.UTC()
		for j := range rec.Events {
			if r, ok := rec.Events[j].Message.(*forge.Result); ok {
				c.result(r, rec.Events[j].At.UTC())
			}
		}
		c.effects(&rec.Effects)
		c.wait(waitsOf(f.intent))
	}
	list := make([]document.Span, len(c.spans))
	for i, s := range c.spans {
		list[i] = *s
	}
	slices.SortStableFunc(list, func(a, b document.Span) int { return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Task, b.Task)) })
	t := document.Timeline{Intent: key.Intent, Title: f.intent.Intent.Title, Records: f.Records, Spans: list}
	if f.intent.Run > 0 {
		t.TraceID = telemetry.Run{Key: key, Number: f.intent.Run}.TraceID()
	}
	return t
}

// wait identifies something that is waited for.
type wait struct {
	kind document.SpanKind
	task forge.TaskID
	// waiting names the decision that a person has to take; empty for waits that end without one.
	waiting forge.Waiting
}

// clock makes spans of what the records say, in their order.
type clock struct {
	now   time.Time
	spans []*document.Span
	// attempts are the open spans of commands that were issued, by attempts without a claim: of each the wait for a
	// worker, and then the attempt itself. waits are the other open ones.
	attempts map[forge.Attempt]*document.Span
	waits    map[wait]*document.Span
}

// begin adds a span that goes on.
func (c *clock) begin(s document.Span) *document.Span {
	c.spans = append(c.spans, &s)
	return &s
}

// within returns a time of a worker's clock, which may be wrong, as one between two that the journal knows.
func within(at, from, to time.Time) time.Time {
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

// effects begins a span for each attempt that a record issued, and ends those of attempts that it gave up. A command that
// is issued once more under the same claim is a repetition after a crash, and changes nothing.
func (c *clock) effects(e *forge.Effects) {
	for i := range e.Commands {
		a := e.Commands[i].Attempt
		claim := a.Claim
		a.Claim = 0
		if was := c.attempts[a]; was != nil {
			if was.Claim == claim { // it is repeated
				continue
			}
			was.To, was.Outcome = c.now, "given to another worker"
		}
		c.attempts[a] = c.begin(document.Span{
			Kind: document.SpanQueue, Task: a.Task, Step: a.Step, Attempt: a.Number, Claim: claim, From: c.now, Detail: "no worker has begun it",
		})
	}
	for _, a := range e.Cancels {
		claim := a.Claim
		a.Claim = 0
		if was := c.attempts[a]; was != nil && was.Claim == claim { // else the same record gave it to another worker
			was.To, was.Outcome = c.now, "not needed any more"
			delete(c.attempts, a)
		}
	}
}

// result ends the wait for a worker and, unless the worker reports its start alone, the attempt. Reports of claims that
// were given to another worker add nothing.
func (c *clock) result(r *forge.Result, at time.Time) {
	a := r.Attempt
	a.Claim = 0
	s := c.attempts[a]
	if s == nil || s.Claim != r.Attempt.Claim { // one that was given up
		return
	}
	if s.Kind == document.SpanQueue {
		began := within(r.StartedAt, s.From, at)
		s.To, s.Detail = began, "until a worker began it"
		s = c.begin(document.Span{
			Kind: document.SpanAttempt, Task: a.Task, Step: a.Step, Attempt: a.Number, Claim: r.Attempt.Claim, From: began, Detail: "by " + string(r.Replica),
		})
		c.attempts[a] = s
	}
	if r.IsStart() {
		return
	}
	s.To, s.Outcome = within(s.From.Add(r.Duration), s.From, at), Outcome(r)
	delete(c.attempts, a)
}

// wait ends the waits that are not among those of now, and begins those that are new. The words of a wait are those with
// which it began.
func (c *clock) wait(now map[wait]string) {
	for w, s := range c.waits {
		if _, still := now[w]; !still {
			s.To = c.now
			delete(c.waits, w)
		}
	}
	for _, w := range slices.SortedFunc(maps.Keys(now), func(a, b wait) int { return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.kind, b.kind)) }) {
		if c.waits[w] == nil {
			c.waits[w] = c.begin(document.Span{Kind: w.kind, Task: w.task, From: c.now, Detail: now[w]})
		}
	}
}

// ofStages has the stages in which a task waits for something else than a worker.
var ofStages = map[task.Stage]wait{
	task.Locking:    {kind: document.SpanLocks},
	task.Merging:    {kind: document.SpanMerge},
	task.Waiting:    {document.SpanPerson, "", forge.WaitingDirty},
	task.Held:       {document.SpanForge, "", forge.WaitingPull},
	task.Protected:  {document.SpanPerson, "", forge.WaitingApproval},
	task.Disputed:   {document.SpanPerson, "", forge.WaitingClarification},
	task.Asking:     {document.SpanPerson, "", forge.WaitingClarification},
	task.Red:        {document.SpanPerson, "", forge.WaitingBase},
	task.OverBudget: {document.SpanBudget, "", forge.WaitingBudget},
}

// ofWaiting has the kinds of the waits of a whole intent; all others are for a person.
var ofWaiting = map[forge.Waiting]document.SpanKind{forge.WaitingBudget: document.SpanBudget, forge.WaitingPull: document.SpanForge}

// waitsOf returns the waits of an intent beside its open attempts, each with words for a person. A wait of a task stands for
// that of its intent.
func waitsOf(s *flow.Intent) map[wait]string {
	now, sum, asked := map[wait]string{}, s.Summary(), false
	for _, t := range s.Tasks.Tasks {
		w, waits := ofStages[t.Stage]
		if !waits {
			continue
		}
		w.task = t.ID
		asked = asked || w.waiting == sum.Waiting
		now[w] = cmp.Or(map[task.Stage]string{
			task.Locking: "first in the queue, after a conflict", task.Merging: "in the merge queue, until it is merged or comes back",
		}[t.Stage], t.Failure, string(w.waiting))
	}
	switch {
	case sum.Waiting != "" && !asked:
		now[wait{cmp.Or(ofWaiting[sum.Waiting], document.SpanPerson), "", sum.Waiting}] = cmp.Or(sum.Reason, sum.Activity, string(sum.Waiting))
	case sum.Waiting != "":
	case s.Phase == control.Depending, s.Phase == control.Children:
		now[wait{kind: document.SpanOthers}] = sum.Activity
	case len(s.Dispatch.Waiting) > 0:
		now[wait{kind: document.SpanBudget}] = "the project reserves the budget of a call"
	case len(s.Dispatch.Outbox.Commands) == 0 && !s.Dispatch.Outbox.Earliest(dispatch.ParkPrefix).IsZero():
		now[wait{kind: document.SpanLater}] = sum.Activity
	}
	return now
}
