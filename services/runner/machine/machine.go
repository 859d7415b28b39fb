// Package machine drives the state machines of package flow: it loads a
// machine, lets it decide, journals the decision together with its effects in
// one message, and only then lets the effects happen. It knows neither NATS nor
// time, so that the simulator can drive it through every order of failures.
package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// ErrConflict is returned by Journal.Append when another replica appended first.
// Nothing was written.
var ErrConflict = errors.New("the journal has a newer decision")

// ErrTooLarge is returned by Journal.Append when the record is larger than the
// journal takes. Nothing was written.
var ErrTooLarge = errors.New("the decision is too large to record")

// ErrDamaged says that a machine's journal does not lead to the state that its last record
// contains, or that its chain of hashes is broken: records are missing, were altered, or
// were decided by rules that have changed since. Nothing is decided on such a machine.
var ErrDamaged = errors.New("records of the journal are missing, and the store is damaged: restore it from a backup; " +
	"or another version of pfl-forge decided them: finish with that version, or begin with an empty store")

// Machine is a pure state machine; flow.Intent and projects.Project are the two kinds. It
// has no clock and does no I/O.
type Machine interface {
	// Step applies an event by a version of the rules, and returns the effects
	// and the ruling for its sender. A refused or ignored event changes nothing.
	Step(by rules.Version, ev forge.Event) (forge.Effects, forge.Ruling)
	// Rules returns the version that the last event was applied by, 0 before
	// the first. None after it is older.
	Rules() rules.Version
	// Pending returns all effects that have to be in force in the present state.
	// Dispatching them again is safe.
	Pending() forge.Effects
	// Summary returns the present state as lists show it.
	Summary() forge.Summary
	// Snapshot returns the state, to be read back by package flow.
	Snapshot() ([]byte, error)
}

// New returns the machine of a key, in the state before any event.
func New(key forge.Key) Machine {
	if key.IsProject() {
		return projects.New(key)
	}
	return flow.NewIntent(key)
}

// Fold returns the machine in the state after its journal's records.
func Fold(key forge.Key, records []forge.Record) Machine {
	m := New(key)
	fold(m, records)
	return m
}

// fold has a machine go on with records of its journal, each by the rules that it was decided by.
func fold(m Machine, records []forge.Record) {
	for i := range records {
		by := rules.Of(&records[i])
		for _, ev := range records[i].Events {
			m.Step(by, ev)
		}
	}
}

// Intact reports whether a machine that was folded from these records is in the state
// of the last one: its summary says when the last decision was taken.
func Intact(m Machine, records []forge.Record) bool {
	n := len(records)
	return n == 0 || m.Summary().UpdatedAt.Equal(records[n-1].Summary.UpdatedAt)
}

// Journal keeps the decisions of every machine, in order.
type Journal interface {
	// After returns a machine's journal behind a message; all of it for 0.
	After(ctx context.Context, key forge.Key, seq uint64) (chain.Tail, error)
	// Append adds a record if after is still the head, and returns
	// the new one. ErrConflict and ErrTooLarge: nothing was written. Any other
	// error: the outcome is unknown.
	Append(ctx context.Context, key forge.Key, after chain.Head, rec forge.Record) (chain.Head, error)
	// Last returns the head to append to.
	Last(ctx context.Context, key forge.Key) (chain.Head, error)
}

// Outbox makes effects happen.
type Outbox interface {
	// Dispatch sends the effects of a machine. It may be called again with the same
	// effects, which then changes nothing.
	Dispatch(ctx context.Context, key forge.Key, eff forge.Effects) error
}

// maxBatch bounds how many events share one journal record.
const maxBatch = 64

// conflictRetries bounds how often a decision is taken anew because another
// replica was faster; then the events are handed back for redelivery.
const conflictRetries = 10

// Driver decides on events, with a cache of machines. It is safe for concurrent use:
// events that arrive for a machine while it is busy are decided together and share
// one durable write.
type Driver struct {
	journal Journal
	outbox  Outbox
	clock   func() time.Time
	// limit bounds the cached machines.
	limit int
	// snapshots is nil for a driver that folds every journal from its beginning.
	snapshots Snapshots
	// active returns the version of the rules for new decisions.
	active func() rules.Version

	mu    sync.Mutex
	slots map[forge.Key]*slot
	// silent is when the store of snapshots last did not answer in time.
	silent time.Time
}

// slot is the place of one machine: its cached state, and the events that wait for
// it.
type slot struct {
	// machine is nil if it is not cached.
	machine Machine
	// head is the end of the journal that machine is at.
	head chain.Head
	// busy says that a goroutine is deciding.
	busy  bool
	queue []*call
}

// call is one Decide that waits.
type call struct {
	event  forge.Event
	again  bool
	ruling forge.Ruling
	err    error
	done   chan struct{}
}

// NewDriver returns a driver that keeps at most limit machines in memory. It
// decides by the newest rules, until Obey says otherwise.
func NewDriver(j Journal, o Outbox, clock func() time.Time, limit int) *Driver {
	newest := func() rules.Version { return rules.Newest }
	return &Driver{journal: j, outbox: o, clock: clock, limit: limit, slots: map[forge.Key]*slot{}, active: newest}
}

// Obey has the driver decide by the version of the rules that active returns. A machine that
// newer ones have decided on stays with those: what they led to is no state of the older ones.
func (d *Driver) Obey(active func() rules.Version) { d.active = active }

// Decide takes the decision on one event and returns once it is durable and its
// effects are dispatched. On an error the event has to be delivered again; again
// says that this is such a delivery, so that the effects of a decision whose
// taker died are not lost. (An event that merely comes twice must not cause
// effects: two machines that repeat themselves to each other never stop.)
func (d *Driver) Decide(ctx context.Context, ev forge.Event, again bool) (forge.Ruling, error) {
	c := &call{event: ev, again: again, done: make(chan struct{})}
	d.mu.Lock()
	s := d.slots[ev.To]
	if s == nil {
		s = &slot{}
		d.slots[ev.To] = s
	}
	s.queue = append(s.queue, c)
	if s.busy {
		d.mu.Unlock()
		<-c.done
		return c.ruling, c.err
	}
	s.busy = true
	for len(s.queue) > 0 {
		n := min(len(s.queue), maxBatch)
		batch := s.queue[:n:n]
		s.queue = s.queue[n:]
		d.mu.Unlock()
		err := d.decide(ctx, ev.To, s, batch)
		for _, b := range batch {
			b.err = err
			close(b.done)
		}
		d.mu.Lock()
	}
	s.busy = false
	d.evict(ev.To, s)
	d.mu.Unlock()
	return c.ruling, c.err
}

// evict keeps the cache within its limit: a machine can always be folded again.
// Projects stay: there are few, and their journals are the longest.
func (d *Driver) evict(key forge.Key, s *slot) {
	if s.machine == nil {
		delete(d.slots, key)
	}
	for k, other := range d.slots {
		if len(d.slots) <= d.limit {
			return
		}
		if !other.busy && k != key && !k.IsProject() {
			delete(d.slots, k)
		}
	}
}

// decide decides on a batch, again when another replica was faster.
func (d *Driver) decide(ctx context.Context, key forge.Key, s *slot, batch []*call) error {
	for range conflictRetries {
		err := d.try(ctx, key, s, batch)
		switch {
		case errors.Is(err, ErrTooLarge):
			return d.shrink(ctx, key, s, batch)
		case !errors.Is(err, ErrConflict):
			return err
		}
	}
	return fmt.Errorf("deciding on %s: %w", key, ErrConflict)
}

// shrink decides on the events of a batch one by one. An event whose decision is too
// large by itself is refused; if it is a worker's result, a failure takes its place,
// so that the attempt can be repeated.
func (d *Driver) shrink(ctx context.Context, key forge.Key, s *slot, batch []*call) error {
	if len(batch) > 1 {
		for i := range batch {
			if err := d.decide(ctx, key, s, batch[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	c := batch[0]
	if r := forge.As[*forge.Result](c.event.Message); r != nil && r.Failure() == nil {
		c.event.Message = &forge.Result{
			To: r.To, Attempt: r.Attempt, Replica: r.Replica, StartedAt: r.StartedAt, Duration: r.Duration,
			Agent: r.Agent, Model: r.Model, Session: r.Session, Usage: r.Usage, Executor: r.Executor,
			Output: &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the answer leads to a decision that is too large to record; make it smaller"},
		}
		c.event.Signature = "" // its worker has not signed that
		return d.decide(ctx, key, s, batch)
	}
	c.ruling = forge.Ruling{EventID: c.event.ID, Decision: forge.Refused, Intent: key.Intent, Reason: ErrTooLarge.Error()}
	return nil
}

// try decides on a batch once: load, step, journal, dispatch.
func (d *Driver) try(ctx context.Context, key forge.Key, s *slot, batch []*call) error {
	cached := s.machine != nil
	if !cached {
		l, err := d.Load(ctx, key)
		if err != nil {
			return err
		}
		s.machine, s.head = l.Machine, l.Head
	}
	var rec forge.Record
	var repeat []forge.Effects
	now, by := d.clock(), max(d.active(), s.machine.Rules())
	for _, c := range batch {
		ev := c.event
		ev.At = now
		eff, ruling := s.machine.Step(by, ev)
		c.ruling = ruling
		if ruling.Decision != forge.Applied {
			if c.again {
				Merge(&eff, s.machine.Pending())
			}
			repeat = append(repeat, eff)
			continue
		}
		rec.Events = append(rec.Events, ev)
		Merge(&rec.Effects, eff)
	}
	if len(rec.Events) == 0 {
		if err := d.current(ctx, key, s, cached); err != nil {
			return err
		}
	} else {
		rec.Summary = s.machine.Summary()
		by.Stamp(&rec)
		head, err := d.journal.Append(ctx, key, s.head, rec)
		if err != nil {
			s.machine = nil // it is ahead of the journal, or behind it
			return fmt.Errorf("journaling %s: %w", key, err)
		}
		s.head = head
	}
	for _, eff := range repeat {
		Merge(&rec.Effects, eff)
	}
	return d.dispatch(ctx, key, &s.head, rec.Effects)
}

// dispatch lets effects happen, if there are any. Each event for another
// machine names the last record of this one's journal, which that machine
// journals with it: so what is missing in one journal is known in another.
func (d *Driver) dispatch(ctx context.Context, key forge.Key, head *chain.Head, eff forge.Effects) error {
	if eff.Empty() {
		return nil
	}
	if len(eff.Outbox) > 0 {
		ref, err := chain.NewRef(key, head)
		if err != nil {
			return fmt.Errorf("dispatching for %s: %w", key, err)
		}
		eff.Outbox = slices.Clone(eff.Outbox) // the record keeps its own
		for i := range eff.Outbox {
			eff.Outbox[i].Anchor = ref.String()
		}
	}
	if err := d.outbox.Dispatch(ctx, key, eff); err != nil {
		return fmt.Errorf("dispatching for %s: %w", key, err)
	}
	return nil
}

// current returns ErrConflict if a decision not to act was taken on a cached state
// that another replica has overtaken.
func (d *Driver) current(ctx context.Context, key forge.Key, s *slot, cached bool) error {
	if !cached {
		return nil
	}
	last, err := d.journal.Last(ctx, key)
	if err != nil {
		return fmt.Errorf("reading the last decision of %s: %w", key, err)
	}
	if last.Seq != s.head.Seq {
		s.machine = nil
		return ErrConflict
	}
	return nil
}

// Recover dispatches everything that has to be in force for a machine, because a
// crash or the loss of a stream may have swallowed it. It returns the machine, also if only the
// dispatch failed: a caller that looks at it need not fold a long journal a second time.
func (d *Driver) Recover(ctx context.Context, key forge.Key) (*Loaded, error) {
	l, err := d.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	return l, d.dispatch(ctx, key, &l.Head, l.Pending())
}

// Merge appends effects to others, in order.
func Merge(to *forge.Effects, eff forge.Effects) {
	to.Commands = append(to.Commands, eff.Commands...)
	to.Timers = append(to.Timers, eff.Timers...)
	to.Outbox = append(to.Outbox, eff.Outbox...)
	to.Cancels = append(to.Cancels, eff.Cancels...)
	to.ReleasedTasks = append(to.ReleasedTasks, eff.ReleasedTasks...)
	to.Ended = to.Ended || eff.Ended
}
