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
	"github.com/pfl-forge/pfl-forge/services/runner/spans"
)

// Timeline returns all records of an intent, with its attempts and waits, by their beginning.
//
// Package spans says which times of workers count.
func Timeline(key forge.Key, records []forge.Record) document.Timeline {
	f := NewFilm(key, false)
	c := clock{waits: map[wait]*document.Span{}}
	c.attempts.Begin = func(s *document.Span) { c.spans = append(c.spans, s) }
	for i := range records {
		rec := &records[i]
		f.Add(rec)
		if len(rec.Events) == 0 {
			continue
		}
		c.now = rec.Events[len(rec.Events)-1].At.UTC()
		for j := range rec.Events {
			if r, ok := rec.Events[j].Message.(*forge.Result); ok {
				c.attempts.Result(r, rec.Events[j].At.UTC(), Outcome(r))
			}
		}
		c.attempts.Effects(&rec.Effects, c.now)
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
	// attempts follows those, with the waits for a worker. waits are the other open spans.
	attempts spans.Attempts
	waits    map[wait]*document.Span
}

// begin adds a span that goes on.
func (c *clock) begin(s document.Span) *document.Span {
	c.spans = append(c.spans, &s)
	return &s
}

// wait ends the waits that are not among those of now, and begins those that
// are new. The words of a wait are those with which it began.
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

// waitsOf returns the waits of an intent beside its open attempts, each with
// words for a person. A wait of a task stands for that of its intent.
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
