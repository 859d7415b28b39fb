package document

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// TimelineRequest asks for a page of the records of an intent, with the attempts and
// the waits of their time. The zero values of all but the intent ask for the beginning.
type TimelineRequest struct {
	// Intent is the one whose journal it is.
	Intent forge.IntentID `json:"intent"`
	// After is how many records to pass over.
	After int `json:"after,omitempty"`
	// Limit bounds the records of the page; 0 stands for 100.
	Limit int `json:"limit,omitempty"`
}

// A timeline is made of the journal of one intent, and of nothing else: neither
// a transcript nor what a worker keeps is in it. So it can be made again by
// whoever has the journal, and says the same.
//
// pfl-forge replay prints the same records. Spans are computed from them, so
// that a program need not know which messages begin and end an attempt.

// Timeline answers with a page of the records of an intent, the oldest first. Texts of agents and
// people in it are cut; whoever shows them makes them harmless first.
type Timeline struct {
	Intent forge.IntentID `json:"intent"`
	Title  string         `json:"title"`
	// TraceID names the trace of the newest run. There is one if the services export traces.
	TraceID string `json:"trace_id,omitempty"`
	// Records are those of the page: From is how many come before it, Total how many there are.
	Records []Record `json:"records"`
	From    int      `json:"from"`
	Total   int      `json:"total"`
	// Next is the value of after that continues; 0 at the end.
	Next int `json:"next,omitempty"`
	// Spans are the attempts and waits that are not over before the first
	// record of the page, and begin before the last one is decided, by their
	// beginning. LeftOut counts those that there was no room for.
	Spans   []Span `json:"spans"`
	LeftOut int    `json:"left_out,omitempty"`
}

// Record is a record of the journal of an intent: what was decided together, by
// which rules, and what followed.
type Record struct {
	// Number counts the records of the intent, from 1.
	Number int `json:"number" yaml:"number"`
	// At is when the first of its events was decided.
	At time.Time `json:"at" yaml:"at"`
	// Version is that of the rules that it was decided by.
	Version int `json:"version" yaml:"version"`
	// State is that of the intent after it.
	State string `json:"state" yaml:"state"`
	// Events are those that were decided.
	Events []string `json:"events" yaml:"events"`
	// Rules are those that changed the flow, with the details, as this program decides.
	Rules []string `json:"rules,omitempty" yaml:"rules,omitempty"`
	// Sent has the commands, timers and messages that followed.
	Sent []string `json:"sent,omitempty" yaml:"sent,omitempty"`
	// Differs says what today's rules would have decided otherwise, where that is asked for.
	Differs []string `json:"differs,omitempty" yaml:"differs,omitempty"`
}

// SpanKind says what an intent, or one of its tasks, did or waited for in a span of time.
type SpanKind string

// The kinds of spans: a closed set. All but the first are waits.
const (
	// SpanAttempt is an attempt under way, as its worker reported it.
	SpanAttempt SpanKind = "attempt"
	// SpanQueue is a command that no worker has begun.
	SpanQueue SpanKind = "queue"
	// SpanMerge is a change in the merge queue, with the time of its merge.
	SpanMerge SpanKind = "merge_queue"
	// SpanLocks is a task that waits for file locks after a conflict.
	SpanLocks SpanKind = "locks"
	// SpanPerson is an intent that waits for a person; Detail says for what.
	SpanPerson SpanKind = "person"
	// SpanBudget is an intent without budget.
	SpanBudget SpanKind = "budget"
	// SpanForge is a change that waits at its pull request.
	SpanForge SpanKind = "forge"
	// SpanOthers is an intent that waits for other intents.
	SpanOthers SpanKind = "intents"
	// SpanLater is an intent that tries again by itself, such as after the end of a limit.
	SpanLater SpanKind = "later"
)

// SpanKinds returns every kind of a span.
func SpanKinds() []SpanKind {
	return []SpanKind{SpanAttempt, SpanQueue, SpanMerge, SpanLocks, SpanPerson, SpanBudget, SpanForge, SpanOthers, SpanLater}
}

// Span is a time in which an attempt was under way, or something was waited for.
type Span struct {
	Kind SpanKind `json:"kind"`
	// Task is the task that it is about; empty for the whole intent.
	Task forge.TaskID `json:"task,omitempty"`
	// Step, Attempt and Claim name the attempt, also of a wait for a worker.
	Step    forge.Step `json:"step,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	Claim   int        `json:"claim,omitempty"`
	// From and To are its beginning and its end, as the journal knows them: To
	// is left out while it goes on.
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	// Outcome is how an attempt ended: ok, rejected and the like, or why it failed.
	Outcome string `json:"outcome,omitempty"`
	// Detail says, for a person, what is waited for, or which worker has the attempt.
	Detail string `json:"detail,omitempty"`
}

const (
	// timelineLimit is how many records a page has unless it is said, and
	// mostTimeline how many it can be asked for.
	timelineLimit, mostTimeline = 100, 500
	// timerecordText bounds the records of a page, as JSON, about; spanBytes its spans.
	timerecordText, spanBytes = 256 << 10, 128 << 10
	// recordText bounds a line of a record, and recordLines the lines of each kind in it.
	recordText, recordLines = 500, 50
	// recordBase and spanBase are about what a record and a span take beside their texts.
	recordBase, spanBase = 150, 250
)

// Check returns every mistake in a request.
func (r *TimelineRequest) Check() (errs []forge.FieldError) {
	if _, err := forge.ParseIntentID(string(r.Intent)); err != nil {
		errs = append(errs, forge.FieldError{Field: "intent", Reason: err.Error()})
	}
	if r.After < 0 {
		errs = append(errs, forge.FieldError{Field: "after", Reason: "is below 0"})
	}
	if r.Limit < 0 || r.Limit > mostTimeline {
		errs = append(errs, forge.FieldError{Field: "limit", Reason: fmt.Sprintf("is %d; it can be 1 to %d", r.Limit, mostTimeline)})
	}
	return errs
}

// Of returns the intent that it is about.
func (r *TimelineRequest) Of() forge.IntentID { return r.Intent }

// Page reduces a timeline of all records and spans to the page that is asked
// for, with each text cut to its bound. A page has a record wherever one is
// left, so that whoever follows Next comes to the end.
func (t *Timeline) Page(r TimelineRequest) {
	all, limit := t.Records, r.Limit
	if limit == 0 {
		limit = timelineLimit
	}
	t.Total, t.From = len(all), min(r.After, len(all))
	t.Records = []Record{}
	room := timerecordText
	for i := range all[t.From:] {
		one := all[t.From+i]
		if room -= one.cut(); len(t.Records) == limit || room < 0 && i > 0 {
			t.Next = t.From + i
			break
		}
		t.Records = append(t.Records, one)
	}
	t.spans(all)
}

// spans leaves the spans of the time of the page.
func (t *Timeline) spans(all []Record) {
	list := t.Spans
	t.Spans = []Span{}
	if len(t.Records) == 0 {
		return
	}
	first, last, room := t.Records[0].At, time.Time{}, spanBytes
	if end := t.From + len(t.Records); end < len(all) {
		last = all[end].At
	}
	for _, s := range list {
		if !s.To.IsZero() && s.To.Before(first) || !last.IsZero() && !s.From.Before(last) {
			continue
		}
		s.Detail, s.Outcome = short(s.Detail), short(s.Outcome)
		if room -= spanBase + written(s.Detail) + written(s.Outcome); room < 0 {
			t.LeftOut++
			continue
		}
		t.Spans = append(t.Spans, s)
	}
}

// cut bounds the texts of a record, and returns about how many bytes it takes as JSON.
func (r *Record) cut() int {
	size := recordBase
	r.State = short(r.State)
	size += written(r.State)
	for _, list := range []*[]string{&r.Events, &r.Rules, &r.Sent, &r.Differs} {
		var kept []string
		for i, line := range *list {
			if i == recordLines {
				kept = append(kept, fmt.Sprintf("and %d more", len(*list)-i))
				break
			}
			kept = append(kept, short(line))
			size += written(kept[i]) + 3
		}
		*list = kept
	}
	if r.Events == nil {
		r.Events = []string{}
	}
	return size
}

// short returns a text, or its beginning with a mark that it is one.
func short(s string) string {
	if len(s) <= recordText {
		return s
	}
	return beginning(s, recordText) + "…"
}
