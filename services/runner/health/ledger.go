// Package health adds up, from the journals of a project, how well its work
// goes: how runs of intents ended, how often changes were made again, how long
// steps took, what was waited for, and which commands are flaky, by week.
//
// It folds no machine. What is needed stands in the records as they are: the
// summary after each, the commands that were issued and the results that ended
// them (package spans), and the requests to the project with their answers. So
// an attempt that is reported twice, or too late, ends nothing a second time.
//
// # What counts
//
//	a run      when the status of its intent has become one that ends, done or not; a retry is another run
//	a change   when an implement step reports one with commits and asks nothing; it is made again if its task had one before,
//	           unless it is the second of two that are made for code to choose from
//	a setback  when a review rejects, verify fails by the change's own fault, or the change conflicts, in its own checkout or in its merge
//	a step     from the worker's beginning to the result, for attempts that a worker ended, those of the project among them: merges
//	           and, apart from these, trials of the merge queue, looks at pull requests, reflections
//	a wait     for a worker: from the command to its beginning, also of a worker that was given up then;
//	           for the merge queue and file locks: from the request to its answer, a withdrawn one not at all;
//	           for a person, a budget or a pull request: while the summary of the intent says so
//
// How long the merge of a project waited for a worker is in no wait of its own:
// the wait for the merge queue has it.
//
// All of these count in the week in which they end: what still goes on is in no figure, so a
// change that has waited since Monday is not seen here before it is merged, but on the board.
//
// # Memory
//
// A ledger keeps the durations themselves, since percentiles of weeks cannot be put together
// from percentiles of days: eight bytes for each attempt and wait of half a year, which is some
// megabytes for a project with a thousand changes a week. Of an intent whose run has ended it
// keeps the status, since its journal goes on: what comes after the end ends nothing again.
package health

import (
	"cmp"
	"maps"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
	"github.com/pfl-forge/pfl-forge/services/runner/spans"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Ledger has the figures of some weeks of a project. The zero value is empty
// and keeps everything. It is not safe for concurrent use.
type Ledger struct {
	// Keep is how many weeks are kept, by the time of the newest record; 0 keeps all.
	Keep int

	weeks map[time.Time]*week
	known map[forge.Key]*under
	// project has the attempts of the project's own steps that are under way.
	project project
}

// project has the state of the project's own steps.
type project struct {
	attempts spans.Attempts
	// trials are those of its attempts, without a claim, that merge nothing.
	trials map[forge.Attempt]bool
}

// under has the attempts, waits and requests of one intent that are under way.
// Those are dropped when its run has ended.
type under struct {
	attempts spans.Attempts
	// status and waiting are those of the last record, and since is when it began to wait.
	status  forge.Status
	waiting forge.Waiting
	since   time.Time
	// asked has the requests to the project that are not answered yet.
	asked map[request]time.Time
	// made has the tasks of which a change was made; they are forgotten when the intent is done.
	made map[forge.TaskID]bool
	// run is that of the last record.
	run int
	// afresh has the tasks whose change is made anew from the tip because of a
	// conflict or a person, and second those of which the second of two is being made.
	afresh, second map[forge.TaskID]bool
}

// request is one of a task to the project.
type request struct {
	kind   document.SpanKind
	task   forge.TaskID
	number int
}

// Add adds the next record of a journal. Of a project's there are only the
// durations of its steps: what became of a merge is told to the intent.
func (l *Ledger) Add(key forge.Key, rec *forge.Record) {
	if len(rec.Events) == 0 {
		return
	}
	now := rec.Events[len(rec.Events)-1].At.UTC()
	if key.IsProject() {
		l.own(rec, now)
		l.forget(now)
		return
	}
	u := l.under(key)
	for i := range rec.Events {
		l.event(u, &rec.Events[i])
	}
	u.attempts.Effects(&rec.Effects, now)
	u.issued(rec)
	l.in(now).book.Add(key, rec)
	u.asks(&rec.Effects, now)
	l.stands(u, &rec.Summary, now)
	if u.status.Ended() && u.waiting == "" {
		l.known[key] = u.rest()
	}
	l.forget(now)
}

// own takes a record of the project.
func (l *Ledger) own(rec *forge.Record, now time.Time) {
	p := &l.project
	p.attempts.Ended = func(s *document.Span) {
		a := forge.Attempt{Task: s.Task, Step: s.Step, Number: s.Attempt}
		if s.Kind == document.SpanQueue && s.Outcome != spans.Void || s.Outcome == spans.Moved {
			return
		}
		key := string(s.Step)
		if p.trials[a] {
			key = figures.TrialKey
		}
		delete(p.trials, a)
		if s.Outcome == spans.Void || s.Step == forge.StepProbe { // how long an origin was away is no step of any work
			return
		}
		w := l.in(s.To)
		w.steps[key] = append(w.steps[key], s.To.Sub(s.From))
	}
	for i := range rec.Events {
		if r := forge.As[*forge.Result](rec.Events[i].Message); r != nil {
			p.attempts.Result(r, rec.Events[i].At.UTC(), report.Outcome(r))
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		a := c.Attempt
		if a.Claim = 0; !c.Merge().Trial {
			delete(p.trials, a) // the merge of a change has the number of its trial
			continue
		}
		if p.trials == nil {
			p.trials = map[forge.Attempt]bool{}
		}
		p.trials[a] = true
	}
	p.attempts.Effects(&rec.Effects, now)
}

// under returns that of an intent, an empty one if there is none.
func (l *Ledger) under(key forge.Key) *under {
	if l.known == nil {
		l.known = map[forge.Key]*under{}
	}
	u := l.known[key]
	if u == nil {
		u = &under{}
		l.known[key] = u
	}
	u.attempts.Ended = l.spent
	return u
}

// rest returns the memory of an intent whose run has ended: a retry goes on
// with its tasks, unless it is done.
func (u *under) rest() *under {
	if u.status == forge.StatusDone {
		return &under{status: u.status}
	}
	return &under{status: u.status, made: u.made, run: u.run}
}

// spent takes a span that has ended.
func (l *Ledger) spent(s *document.Span) {
	w, took := l.in(s.To), s.To.Sub(s.From)
	switch {
	case s.Kind == document.SpanQueue && s.Outcome != spans.Void:
		w.waits[string(document.SpanQueue)] = append(w.waits[string(document.SpanQueue)], took)
	case s.Kind == document.SpanAttempt && s.Outcome != spans.Moved && s.Outcome != spans.Void:
		w.steps[string(s.Step)] = append(w.steps[string(s.Step)], took)
	}
}

// event takes the result of an attempt, or the answer to a request.
func (l *Ledger) event(u *under, ev *forge.Event) {
	at := ev.At.UTC()
	switch m := ev.Message.(type) {
	case *forge.Result:
		outcome := report.Outcome(m)
		if !u.attempts.Result(m, at, outcome) {
			return
		}
		w := l.in(at)
		if made := forge.As[*forge.Implementation](m.Output); made != nil && m.Attempt.Step == forge.StepImplement {
			w.change(u, m.Attempt.Task, made)
		}
		switch outcome {
		case "rejected":
			w.ReviewsRejected++
		case "verify_failed":
			if rb := forge.As[*forge.Rebase](m.Output); rb == nil || faulty(rb.Verify) {
				w.VerifyFailed++
			}
		case "conflict":
			w.Conflicts++
		}
	case *forge.MergeEnded:
		asked := l.answered(u, request{document.SpanMerge, m.Task, m.Number}, at)
		if m.Result == nil || !asked && m.Look == 0 { // a request with a pull request is answered more than once
			return
		}
		switch w := l.in(at); m.Result.Outcome {
		case forge.MergeConflict:
			w.Conflicts++
		case forge.MergeVerifyFailed:
			if faulty(m.Result.Verify) {
				w.VerifyFailed++
			}
		default:
		}
	case *forge.FilesLocked:
		l.answered(u, request{document.SpanLocks, m.Task, m.Number}, at)
		u.anew(m.Task)
	default:
	}
}

// change counts a change of a task, as an implement step reports it. Without
// commits there is no change, and who asks a question has none yet.
func (w *week) change(u *under, task forge.TaskID, made *forge.Implementation) {
	second := u.second[task]
	delete(u.second, task)
	delete(u.afresh, task)
	if made.Commits == 0 || made.Blocked != nil {
		return
	}
	w.Made++
	if u.made[task] && !second {
		w.MadeAgain++
	}
	if u.made == nil {
		u.made = map[forge.TaskID]bool{}
	}
	u.made[task] = true
}

// anew notes that the next change of a task is made from the tip for another
// reason than that two are made.
func (u *under) anew(task forge.TaskID) {
	if u.afresh == nil {
		u.afresh = map[forge.TaskID]bool{}
	}
	u.afresh[task] = true
}

// issued notes which commands have the second of two changes made. The rules start a
// change over from the tip in three cases: a file lock was granted after a conflict, it
// is another run, or it is the second of two. The first two are seen in the journal.
func (u *under) issued(rec *forge.Record) {
	if rec.Summary.Run != u.run {
		u.run = rec.Summary.Run
		for t := range u.made {
			u.anew(t)
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		if task := c.Attempt.Task; c.Attempt.Step == forge.StepImplement && c.Implement().Fresh && u.made[task] && !u.afresh[task] {
			if u.second == nil {
				u.second = map[forge.TaskID]bool{}
			}
			u.second[task] = true
		}
	}
}

// faulty reports whether a change did not pass by itself: not where a check is
// flaky, or the base branch is red.
func faulty(v *forge.VerifyReport) bool {
	if v == nil || len(v.Trials) == 0 {
		return true
	}
	switch verdict.Blame(v, v.Trials[0].Tree) {
	case verdict.FaultOfCheck, verdict.FaultOfBase:
		return false
	default:
		return true
	}
}

// answered ends a wait for the project, and reports whether there was one.
func (l *Ledger) answered(u *under, r request, at time.Time) bool {
	from, asked := u.asked[r]
	if !asked {
		return false
	}
	delete(u.asked, r)
	w := l.in(at)
	w.waits[string(r.kind)] = append(w.waits[string(r.kind)], max(at.Sub(from), 0))
	return true
}

// asks notes the requests to the project that a record sent. One that is repeated began with the
// first; one that was withdrawn, or followed by another one of its task, is not answered any more.
func (u *under) asks(e *forge.Effects, now time.Time) {
	for i := range e.Outbox {
		var r request
		switch m := e.Outbox[i].Message.(type) {
		case *forge.QueueMerge:
			r = request{document.SpanMerge, m.Task, m.Number}
		case *forge.LockFiles:
			r = request{document.SpanLocks, m.Task, m.Number}
		case *forge.WithdrawRequests:
			maps.DeleteFunc(u.asked, func(r request, _ time.Time) bool { return r.task == m.Task })
			continue
		default:
			continue
		}
		if _, known := u.asked[r]; known {
			continue
		}
		maps.DeleteFunc(u.asked, func(old request, _ time.Time) bool { return old.task == r.task && old.kind == r.kind })
		if u.asked == nil {
			u.asked = map[request]time.Time{}
		}
		u.asked[r] = now
	}
}

// ofWaiting has the kinds of what an intent waits for; all others are for a person.
var ofWaiting = map[forge.Waiting]document.SpanKind{forge.WaitingBudget: document.SpanBudget, forge.WaitingPull: document.SpanForge}

// stands compares the state of an intent with that of before: what it waited
// for, and whether its run has ended.
func (l *Ledger) stands(u *under, s *forge.Summary, now time.Time) {
	if u.waiting != s.Waiting {
		if u.waiting != "" {
			kind := string(cmp.Or(ofWaiting[u.waiting], document.SpanPerson))
			w := l.in(now)
			w.waits[kind] = append(w.waits[kind], max(now.Sub(u.since), 0))
		}
		u.waiting, u.since = s.Waiting, now
	}
	if s.Status.Ended() && !u.status.Ended() {
		w := l.in(now)
		switch s.Status {
		case forge.StatusDone:
			w.Done++
		case forge.StatusRejected:
			w.Rejected++
		case forge.StatusCancelled:
			w.Cancelled++
		default:
			w.Failed++
		}
	}
	u.status = s.Status
}
