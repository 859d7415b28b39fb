package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/origins"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/outside"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/publishers"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/shelf"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/versions"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/wishes"
)

// project is the only project of a world.
const project = "p"

// world models everything around the runners, and plays it in one goroutine. Its parts
// are embedded: each has its own state, and world's methods are the actions between
// them. What workers do with a command is in [worker], the invariants are in [checker].
type world struct {
	chaos
	streams
	cluster
	progress

	// known has the facts about each intent that checkDecision compares
	// decisions with.
	known   map[forge.Key]*knowledge
	repo    trunk.Branch
	workers workers
	people  people
	money   money
	shelf   *shelf.Shelf
	// versions are those of the rules that runners know; nil: all know the newest.
	versions *versions.Versions
	origin   origins.Origin
	// outside is the forge; nil where changes are pushed.
	outside *outside.Forge
	wishes  *wishes.People // those who ask for changes; nil where none does
	// publishers go on about what they asked for; nil where none does.
	publishers *publishers.Publishers
	looks      facts.Looks
	// deep has intents divided into children also after the faults stopped.
	deep bool
}

// chaos decides by chance. The same seed leads to the same run.
type chaos struct {
	seed uint64
	rng  *rand.Rand
	// now is the simulated clock, which only timers move.
	now time.Time
	// faults says that things may still go wrong: see chance.
	faults bool
}

// streams models the server: journals, events on their way, commands and timers.
type streams struct {
	journal map[forge.Key][]forge.Record
	// views has those that people were shown last.
	views map[forge.Key]shown
	// keys are those of journal, in the order of their first record. Maps have
	// no order, and a run has to repeat.
	keys []forge.Key

	// inputs are the events on their way, delivered at least once and in any
	// order.
	inputs   []*input
	commands []*command
	// issued has the ids of the commands that the stream holds or held.
	issued map[string]bool
	timers []forge.Timer
	// jobs are the commands that workers have.
	jobs []*job
}

// shown is a view of an intent, after so many records.
type shown struct {
	records int
	view    *forge.View
}

// cluster has the runners, which take events in turn and may crash at any effect.
type cluster struct {
	runners []*machine.Driver
	down    []bool // marks runners that crashed and have not recovered since
	turn    int    // the index of the runner that takes inputs now
	crashIn int    // counts the crash points until the runner crashes; 0 if it does not
}

// progress counts and records the actions of a run.
type progress struct {
	steps      int
	bound      int // the largest number of actions after the faults stopped
	looksTaken int // counts the looks that arrived
	// firstViolation is the first one that checkDecision found; nil if there is
	// none.
	firstViolation error
	trace          []string
	tracing        bool
}

// input is an event on a stream.
type input struct {
	forge.Event
	// again says that it was delivered before.
	again bool
}

// command is a command on the stream.
type command struct {
	forge.Command
	// leased says that a worker has it.
	leased bool
	// acked says that it is done with.
	acked bool
}

// crash is the panic with which a runner dies.
type crash struct{}

// newWorld returns a world with two runners, in which nothing has happened.
func newWorld(seed uint64) *world {
	w := &world{
		chaos: chaos{
			seed: seed, rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), now: time.Unix(1_000_000_000, 0).UTC(), faults: true,
		},
		streams:  streams{journal: map[forge.Key][]forge.Record{}, issued: map[string]bool{}, views: map[forge.Key]shown{}},
		progress: progress{bound: quietActions},
		known:    map[forge.Key]*knowledge{},
	}
	w.shelf = shelf.New(seed, func() []forge.Record { return w.journal[forge.Key{Project: project}] })
	w.versions, w.wishes, w.publishers = versions.New(seed), wishes.New(seed), publishers.New(seed)
	for n := range 2 {
		w.runners, w.down = append(w.runners, w.newDriver(n)), append(w.down, false)
	}
	w.repo.Init(w.rng)
	return w
}

// newDriver returns runner n, which reads the world's journals and has an empty memory.
func (w *world) newDriver(n int) *machine.Driver {
	d := machine.NewDriver(reader{w, n}, w, func() time.Time { return w.now }, 1000)
	d.Obey(w.versions.Begin(n, w.faults))
	w.shelf.Use(d)
	return d
}

// reader is the world as runner n sees its journals.
type reader struct {
	*world

	n int
}

// chance returns true once in n times, and never after the faults stopped.
func (c *chaos) chance(n int) bool { return c.faults && c.rng.IntN(n) == 0 }

// log adds a line to the trace.
func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, args...))
	}
}

// point is a place where a runner may die. There is one before and one after
// every effect.
func (w *world) point() {
	if w.crashIn > 0 {
		w.crashIn--
		if w.crashIn == 0 {
			panic(crash{})
		}
	}
}

// errLost is returned for a write that took place, but whose answer did not arrive.
var errLost = errors.New("the answer was lost")

// After implements machine.Journal.
func (w reader) After(_ context.Context, key forge.Key, seq uint64) (chain.Tail, error) {
	return shelf.After(w.journal[key], seq), w.versions.Read(w.n, w.journal[key])
}

// Append implements machine.Journal. A crash may come before or after the
// write, and the answer to it may get lost: then the driver has to find out by
// itself whether it was written.
func (w reader) Append(_ context.Context, key forge.Key, after chain.Head, rec forge.Record) (chain.Head, error) {
	w.point()
	if uint64(len(w.journal[key])) != after.Seq {
		return chain.Head{}, machine.ErrConflict
	}
	if len(w.journal[key]) == 0 {
		w.keys = append(w.keys, key)
	}
	before := w.journal[key]
	w.journal[key] = append(before, rec)
	for _, ev := range rec.Events {
		w.log("decided %s: %s", key, facts.Describe(ev))
	}
	if err := errors.Join(w.versions.Check(w.n, before, &rec), checker{w.world}.checkDecision(key, &rec)); err != nil && w.firstViolation == nil {
		w.firstViolation = err
	}
	w.point()
	if w.chance(60) {
		return chain.Head{}, errLost
	}
	return shelf.Head(len(w.journal[key])), nil
}

// Last implements machine.Journal.
func (w *world) Last(_ context.Context, key forge.Key) (chain.Head, error) {
	return shelf.Head(len(w.journal[key])), nil
}

// Dispatch implements machine.Outbox, with a crash point before each effect.
// Whether a running job hears of its cancellation is chance.
func (w *world) Dispatch(_ context.Context, key forge.Key, eff forge.Effects) error {
	if eff.Ended {
		w.purge(key)
	}
	for _, c := range eff.Commands {
		w.point()
		id := c.ID()
		if !w.issued[id] {
			w.issued[id] = true
			w.commands = append(w.commands, &command{Command: c})
		}
	}
	for _, t := range eff.Timers {
		w.point()
		w.arm(t)
	}
	for _, n := range eff.Outbox {
		w.point()
		w.inputs = append(w.inputs, &input{Event: n})
	}
	for _, a := range eff.Cancels {
		for _, j := range w.jobs {
			if (j.To == key || key.IsProject() && j.Attempt.Step == forge.StepMerge) && j.command.Attempt == a && w.rng.IntN(2) == 0 {
				j.cancelled = true
			}
		}
	}
	w.point()
	if w.chance(60) {
		return errLost
	}
	return nil
}

// arm sets a timer, in place of one with the same key.
func (s *streams) arm(t forge.Timer) {
	for i := range s.timers {
		if s.timers[i].To == t.To && s.timers[i].Key == t.Key {
			s.timers[i] = t
			return
		}
	}
	s.timers = append(s.timers, t)
}

// purge removes the commands of an intent that ended, except merges and
// reflections, which the project waits for.
func (s *streams) purge(key forge.Key) {
	kept := s.commands[:0]
	for _, c := range s.commands {
		if c.To == key && !c.Attempt.Step.OfProject() {
			delete(s.issued, c.ID())
			continue
		}
		kept = append(kept, c)
	}
	s.commands = kept
}

// loseMemory restarts a server that keeps commands and timers in memory only. Events
// of people and results survive.
func (w *world) loseMemory() {
	w.commands, w.timers = nil, nil
	clear(w.issued)
	kept := w.inputs[:0]
	for _, ev := range w.inputs {
		if durable(ev.Event) {
			kept = append(kept, ev)
		}
	}
	w.inputs = kept
	w.log("the server restarts: commands, timers and notes are gone")
	w.recover(0)
	w.reconcile()
}

// durable reports whether an event is on a stream that survives restarts.
func durable(ev forge.Event) bool {
	return forge.As[*forge.Result](ev.Message) != nil || strings.HasPrefix(ev.ID, "person/")
}

// recover starts runner n again, until it survives its own start.
func (w *world) recover(n int) {
	w.down[n] = false
	for !w.alive(n, func(d *machine.Driver) error {
		for _, key := range w.keys {
			if _, err := d.Recover(context.Background(), key); err != nil && !versions.Refused(err) {
				return err
			}
		}
		return nil
	}) {
		w.log("runner %d did not get up; again", n)
		w.down[n] = false
	}
}

// alive lets runner n do something, and replaces it with an empty memory if it
// dies. It returns true if it survived and had no error.
func (w *world) alive(n int, do func(*machine.Driver) error) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(crash); !is {
				panic(p)
			}
			w.runners[n], w.down[n] = w.newDriver(n), true
			ok = false
		}
	}()
	return do(w.runners[n]) == nil
}

// summary returns the machine's last summary, as workers and people see it.
func (s *streams) summary(key forge.Key) *forge.Summary {
	records := s.journal[key]
	if len(records) == 0 {
		return &forge.Summary{}
	}
	return &records[len(records)-1].Summary
}

// view shows an intent as a person sees it. It is folded anew only if something
// happened to the intent.
func (s *streams) view(key forge.Key) *forge.View {
	last := s.views[key]
	if records := s.journal[key]; last.records != len(records) || last.view == nil {
		v := machine.Fold(key, records).(interface{ View() forge.View }).View()
		last = shown{records: len(records), view: &v}
		s.views[key] = last
	}
	return last.view
}

// wanted reports whether the result of an attempt would still count.
func (s *streams) wanted(c *forge.Command) bool {
	r := forge.Result{To: c.To, Attempt: c.Attempt}
	return s.summary(r.Machine()).Wants(c.Attempt)
}
