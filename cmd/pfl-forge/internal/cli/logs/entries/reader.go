// Package entries reads what happened to intents, and what happens: the decisions of their
// journals and the transcripts of their attempts, in the order of time. A Reader hands each
// Entry to a function; package logs prints them.
//
// The order is made in three steps. Journals are read first, and their entries wait in
// queues. Then come transcripts that only the object store has (lost.go), which wait as
// well. Last comes the stream of transcripts: before each of its lines everything that
// waits from before that line is shown. So nothing has to be sorted as a whole, and a long
// log begins at once. By HTTP there is no stream, and ReadHTTP sorts what it is given.
package entries

import (
	"context"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Decided is the kind of an entry that comes from a journal; the others are of a
// transcript.
const Decided forge.ProgressKind = "decided"

// Entry is one thing that happened.
type Entry struct {
	transcript.Line
	// Tone is set in entries of the kind Decided.
	Tone render.Tone
}

// Query says what to read; empty fields match everything.
type Query struct {
	Project forge.ProjectID
	Intent  forge.IntentID
	Task    forge.TaskID
	Step    forge.Step
	Attempt int
	Since   time.Time
}

// filter returns the query as a filter of the stream of transcripts. It leaves
// out the time.
func (q *Query) filter() subjects.TranscriptFilter {
	return subjects.TranscriptFilter{Project: q.Project, Intent: q.Intent, Task: q.Task, Step: q.Step, Number: q.Attempt}
}

// wants reports whether an entry is asked for. Entries without an attempt are
// left out if the query names a step or an attempt.
func (q *Query) wants(e *Entry) bool {
	return (q.Task == "" || e.Task == q.Task) && (q.Step == "" || e.Step == q.Step) &&
		(q.Attempt == 0 || e.Attempt == q.Attempt) && !e.At.Before(q.Since)
}

// Reader reads entries, and continues after the last one that it has shown.
//
// Its fields below mu are used by the goroutines of Read. show is called with
// mu held, so it must not call the Reader.
type Reader struct {
	query Query
	show  func(Entry)

	mu       sync.Mutex
	machines map[forge.Key]machine.Machine
	// journal is the sequence of the next record to read.
	journal uint64
	// lines is the sequence of the next transcript message; 0 begins by time.
	lines uint64
	// waiting has entries that are not shown yet: transcripts may have earlier
	// ones.
	waiting queues
	// live says that everything from before the start is shown, so that entries
	// are shown as they come.
	live  bool
	moved chan struct{}

	lost lost
}

// New returns a Reader; show is called with one entry at a time.
// It reads nothing before Read is called.
func New(q Query, show func(Entry)) *Reader {
	return &Reader{query: q, show: show, machines: map[forge.Key]machine.Machine{}, waiting: queues{nil}, moved: make(chan struct{}, 1)}
}

// lookAgain is how often to look whether everything is shown, if nothing comes.
const lookAgain = time.Second

// Read shows what there is. With follow it goes on until ctx ends, or, if the query
// names an intent, until that is settled.
//
// It may be called again, also with another bus, and goes on behind the last
// entry that it has shown. Its goroutines have ended when it returns. An intent
// is settled when nothing goes on with it without a person.
func (r *Reader) Read(ctx context.Context, b *bus.Bus, follow bool) error {
	r.live = false
	ctx, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	defer func() { stop(); parts.Wait() }()
	ended := make(chan error, 2)
	caughtUp := make(chan struct{})
	parts.Go(func() { ended <- r.readJournals(ctx, b, func() { close(caughtUp) }) })
	select {
	case <-caughtUp:
	case err := <-ended:
		return err
	}
	r.readLost(ctx, b)
	last, _, err := b.Transcripts.Last(ctx, r.query.filter())
	if err != nil {
		return err
	}
	parts.Go(func() {
		ended <- r.readTranscripts(ctx, b, func() {
			r.goLive(last + 1)
			if !follow {
				stop()
			}
		})
	})
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-r.moved:
		case <-tick.C:
		}
		if follow && r.complete(ctx, b) {
			return nil
		}
	}
}

// readJournals reads journals until ctx ends, and calls caughtUp when it has
// read those from before.
func (r *Reader) readJournals(ctx context.Context, b *bus.Bus, caughtUp func()) error {
	return b.Journal.Follow(ctx, r.query.Project, r.journal, journal.Follower{
		Record: func(key forge.Key, seq uint64, rec forge.Record) error {
			r.record(key, seq, &rec)
			return nil
		},
		CaughtUp: func() error {
			caughtUp()
			return nil
		},
	})
}

// readTranscripts reads the stream of transcripts in the same way. It passes
// over lines that were read from the object store.
func (r *Reader) readTranscripts(ctx context.Context, b *bus.Bus, caughtUp func()) error {
	return b.Transcripts.Follow(ctx, r.query.filter(), r.lines, r.query.Since, transcripts.Follower{
		Lines: func(_ forge.Key, _ forge.Attempt, seq uint64, text []byte) error {
			r.take(seq, transcript.Parse(text))
			return nil
		},
		Known: r.lost.has,
		CaughtUp: func() error {
			caughtUp()
			return nil
		},
	})
}

// record shows what a record means, in its time.
func (r *Reader) record(key forge.Key, seq uint64, rec *forge.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal = seq + 1
	if key.IsProject() || r.query.Intent != "" && key.Intent != r.query.Intent {
		return
	}
	for _, e := range r.fold(key, rec) {
		if !r.query.wants(&e) {
			continue
		}
		if r.live {
			r.show(e)
		} else {
			r.waiting.decided(e)
		}
	}
	r.poke()
}

// fold returns the entries of a record, and what comes next takes it into account.
// A record is folded by the version of the rules that decided it (ADR-0086).
func (r *Reader) fold(key forge.Key, rec *forge.Record) []Entry {
	m := r.machines[key]
	var before forge.Summary
	if m == nil {
		m = machine.New(key)
		r.machines[key] = m
	} else {
		before = m.Summary()
	}
	for _, ev := range rec.Events {
		m.Step(rules.Of(rec), ev)
	}
	after := m.Summary()
	return entries(key, &before, &after, rec)
}

// entries returns the entries of a record that made one state of an intent of another.
func entries(key forge.Key, before, after *forge.Summary, rec *forge.Record) (list []Entry) {
	for _, line := range render.Lines(before, after, rec) {
		e := Entry{Tone: line.Tone, Line: transcript.Line{
			At: line.At, Project: key.Project, Intent: key.Intent, Step: line.Attempt.Step, Attempt: line.Attempt.Number,
			Claim: line.Attempt.Claim, Kind: Decided, Text: line.Text,
		}}
		if line.Who != string(key.Intent) {
			e.Task = forge.TaskID(line.Who)
		}
		list = append(list, e)
	}
	return list
}

// Decisions returns an entry for each event of an intent's journal that is of
// interest, in their order. It reads no transcripts, and works by HTTP as well.
func Decisions(ctx context.Context, t *target.Target, id forge.IntentID) (list []Entry, err error) {
	all, err := t.Decisions(ctx, id)
	for i := range all {
		list = append(list, entries(t.Key(id), &all[i].Before, &all[i].After, all[i].Record)...)
	}
	return list, err
}

// take shows lines, and before each what happened until then.
// seq is that of their message in the stream.
func (r *Reader) take(seq uint64, lines []transcript.Line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = seq + 1
	for _, l := range lines {
		e := Entry{Line: l}
		if !r.query.wants(&e) {
			continue
		}
		r.showUntil(l.At)
		r.show(e)
	}
	r.poke()
}

// showUntil shows what waits until some time.
// The caller holds mu.
func (r *Reader) showUntil(until time.Time) {
	for e := range r.waiting.take(func(at time.Time) bool { return !at.After(until) }) {
		r.show(e)
	}
}

// goLive shows the rest of what there was; from now on entries are shown as they come.
// All lines before next were shown, or are too old.
func (r *Reader) goLive(next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = max(r.lines, next)
	for e := range r.waiting.take(func(time.Time) bool { return true }) {
		r.show(e)
	}
	r.live = true
	r.poke()
}

// poke has Read look whether everything is shown. It does not block.
func (r *Reader) poke() {
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// Idle reports whether nothing goes on with the query's intent without a person, as
// far as was read.
func (r *Reader) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.machines[forge.Key{Project: r.query.Project, Intent: r.query.Intent}]
	if m == nil {
		return false
	}
	s := m.Summary()
	return s.Idle
}

// complete reports whether the intent is settled and everything of it is shown. A worker may
// still send lines of an attempt that was decided on: the end of the stream is asked for, too.
func (r *Reader) complete(ctx context.Context, b *bus.Bus) bool {
	r.mu.Lock()
	live, next := r.live, r.lines
	r.mu.Unlock()
	if !live || !r.Idle() {
		return false
	}
	last, _, err := b.Transcripts.Last(ctx, r.query.filter())
	return err == nil && last < next
}
