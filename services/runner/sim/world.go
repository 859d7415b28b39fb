package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

const project = "p"

// world is everything around the runners: streams, timers, workers, people and
// a repository.
type world struct {
	seed    uint64
	rng     *rand.Rand
	now     time.Time
	faults  bool // may things still go wrong?
	journal map[forge.Key][]forge.Record
	keys    []forge.Key // of journal, in the order of their first record

	inputs         []*input // delivered at least once, in any order
	commands       []*command
	issued         map[string]bool // commands that the stream holds or held
	timers         []forge.Timer
	jobs           []*job
	runners        []*machine.Driver
	down           []bool // runners that crashed and have not recovered since
	turn           int    // the runner that takes inputs now
	crashIn        int    // crash points until the runner crashes; 0: it does not
	firstViolation error  // the first decision that must not be

	known   map[forge.Key]*knowledge
	repo    repo
	workers workers
	people  people
	money   money
	steps   int
	bound   int  // of the actions after the faults
	deep    bool // intents are taken apart also after that
	trace   []string
	tracing bool
}

// input is an event on a stream.
type input struct {
	forge.Event
	again bool // it was delivered before
}

// command is a command in the stream.
type command struct {
	forge.Command
	leased bool // a worker has it
	acked  bool
}

// crash is the panic of a runner that dies.
type crash struct{}

func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)), now: time.Unix(1_000_000_000, 0).UTC(),
		faults: true, bound: quietActions, journal: map[forge.Key][]forge.Record{}, known: map[forge.Key]*knowledge{}, issued: map[string]bool{},
	}
	for range 2 {
		w.runners, w.down = append(w.runners, w.newDriver()), append(w.down, false)
	}
	w.repo.init(w.rng)
	return w
}

func (w *world) newDriver() *machine.Driver {
	return machine.NewDriver(w, w, func() time.Time { return w.now }, 1000)
}

// chance reports true once in n times, and never after the faults stopped.
func (w *world) chance(n int) bool { return w.faults && w.rng.IntN(n) == 0 }

func (w *world) log(format string, args ...any) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, args...))
	}
}

// point is a place where a runner may die.
func (w *world) point() {
	if w.crashIn > 0 {
		w.crashIn--
		if w.crashIn == 0 {
			panic(crash{})
		}
	}
}

var errLost = errors.New("the answer was lost")

// Load implements machine.Journal.
func (w *world) Load(_ context.Context, key forge.Key) ([]forge.Record, uint64, error) {
	records := w.journal[key]
	return records, uint64(len(records)), nil
}

// Append implements machine.Journal.
func (w *world) Append(_ context.Context, key forge.Key, expected uint64, rec forge.Record) (uint64, error) {
	w.point()
	if uint64(len(w.journal[key])) != expected {
		return 0, machine.ErrConflict
	}
	if len(w.journal[key]) == 0 {
		w.keys = append(w.keys, key)
	}
	w.journal[key] = append(w.journal[key], rec)
	for _, ev := range rec.Events {
		w.log("decided %s: %s", key, describe(ev))
	}
	if err := w.checkDecision(key, &rec); err != nil && w.firstViolation == nil {
		w.firstViolation = err
	}
	w.point()
	if w.chance(60) {
		return 0, errLost
	}
	return expected + 1, nil
}

// Last implements machine.Journal.
func (w *world) Last(_ context.Context, key forge.Key) (uint64, error) {
	return uint64(len(w.journal[key])), nil
}

// Dispatch implements machine.Outbox.
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
			if j.To == key && j.command.Attempt == a && w.rng.IntN(2) == 0 {
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

func (w *world) arm(t forge.Timer) {
	for i := range w.timers {
		if w.timers[i].To == t.To && w.timers[i].Key == t.Key {
			w.timers[i] = t
			return
		}
	}
	w.timers = append(w.timers, t)
}

func (w *world) purge(key forge.Key) {
	kept := w.commands[:0]
	for _, c := range w.commands {
		if c.To == key && c.Attempt.Step != forge.StepMerge && c.Attempt.Step != forge.StepReflect {
			delete(w.issued, c.ID())
			continue
		}
		kept = append(kept, c)
	}
	w.commands = kept
}

// loseMemory is a restart of a server that keeps commands and wakes in memory.
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

// durable reports whether an event travels on a stream that survives restarts.
func durable(ev forge.Event) bool {
	return forge.As[*forge.Result](ev.Message) != nil || strings.HasPrefix(ev.ID, "person/")
}

// recover is what a runner does at its start.
func (w *world) recover(n int) {
	w.down[n] = false
	for !w.alive(n, func(d *machine.Driver) error {
		for _, key := range w.keys {
			if err := d.Recover(context.Background(), key); err != nil {
				return err
			}
		}
		return nil
	}) {
		w.log("runner %d did not get up; again", n)
		w.down[n] = false
	}
}

// alive lets a runner do something, and puts a new one in its place if it dies.
// It reports whether all went well.
func (w *world) alive(n int, do func(*machine.Driver) error) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(crash); !is {
				panic(p)
			}
			w.runners[n], w.down[n] = w.newDriver(), true
			ok = false
		}
	}()
	return do(w.runners[n]) == nil
}

// summary is the machine's last summary, as workers and people see it.
func (w *world) summary(key forge.Key) *forge.Summary {
	records := w.journal[key]
	if len(records) == 0 {
		return &forge.Summary{}
	}
	return &records[len(records)-1].Summary
}

// wanted reports whether the result of an attempt would still count.
func (w *world) wanted(c *forge.Command) bool {
	r := forge.Result{To: c.To, Attempt: c.Attempt}
	return w.summary(r.Machine()).Wants(c.Attempt)
}
