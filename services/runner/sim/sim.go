package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/outside"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/versions"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/whole"
)

// Failure is an invariant that did not hold.
type Failure struct {
	// Seed repeats the run.
	Seed uint64
	// Reason names the invariant and the intent.
	Reason string
	// Trace has the actions in order, if they were asked for.
	Trace []string
}

func (f *Failure) Error() string { return fmt.Sprintf("seed %d: %s", f.Seed, f.Reason) }

// Bounds of one run, in actions.
const (
	// faultyActions is the number of actions while things go wrong.
	faultyActions = 200
	// quietActions bounds the actions after that; a run that takes more does not come
	// to rest.
	quietActions = 5_000
)

// Run plays one seed to its end and returns the first violation, or nil.
func Run(seed uint64, trace bool) *Failure {
	w := newWorld(seed)
	w.tracing = trace
	w.populate()
	if err := w.play(); err != nil {
		return &Failure{Seed: seed, Reason: err.Error(), Trace: w.trace}
	}
	return nil
}

// populate chooses the intents, the people and the policy of a run.
func (w *world) populate() {
	w.workers.init()
	for i := range 1 + w.rng.IntN(4) {
		w.people.ids = append(w.people.ids, forge.IntentID(fmt.Sprintf("i%d", i)))
	}
	w.people.outsiders = w.rng.IntN(3) == 0
	w.people.fickle = w.rng.IntN(3) == 0
	w.money.init(w.rng)
	w.money.best, w.money.protected, w.money.whole = facts.BestOf(w.seed), w.wishes.Protects(w.money.protected), whole.New(w.seed)
	if facts.Recipes(w.seed) { // of whose changes no reviewer is asked, and so no second one
		w.money.second = forge.SecondReview{}
	}
	if w.outside = outside.New(w.seed); w.outside != nil {
		w.money.pull, w.repo.Digits = w.outside.Policy, w.outside.Digits()
	}
	w.crowd()
}

// init makes the maps.
func (s *workers) init() {
	s.files, s.verified, s.asked = map[forge.TaskID][]string{}, map[string]string{}, map[reviewed][]string{}
	s.train = train{passed: map[[2]string]bool{}}
	s.ran = map[askedRun]bool{}
	s.made = map[forge.TaskID]int{}
	s.wanted, s.met = map[forge.IntentID][]string{}, map[string][]string{}
}

// play takes the actions with faults, then those without until nothing is left
// to do, and checks the invariants. Without faults it prefers what is there
// already: inputs, then running work, new work, timers, and people last.
func (w *world) play() error {
	for w.steps = 0; w.steps < faultyActions; w.steps++ {
		w.act()
		w.wish()
		w.publish()
		atForge{w}.forgeActs()
	}
	for w.submit() {
	}
	w.faults, w.crashIn = false, 0
	w.log("no more faults")
	for n, down := range w.down {
		if w.versions != nil { // all are upgraded in the end
			w.runners[n], down = w.newDriver(n), true
		}
		if down {
			w.recover(n)
		}
	}
	w.reconcile()
	for ; w.steps < faultyActions+w.bound; w.steps++ {
		w.disturb()
		atForge{w}.forgeActs()
		if w.deliver() || w.work() || w.take(false) || (atForge{w}).forgeCalms() || w.fire() || w.publish() || w.wish() || w.help(true) || w.take(true) {
			continue
		}
		return errors.Join(w.firstViolation, checker{w}.check())
	}
	return fmt.Errorf("it does not come to an end: %s", w.state())
}

// act takes one action at random. Work is more frequent than people.
func (w *world) act() {
	if w.chance(40) && w.crashIn == 0 {
		w.crashIn = 1 + w.rng.IntN(12)
	}
	switch n := w.rng.IntN(100); {
	case n < 45:
		w.deliver()
	case n < 62:
		w.take(!w.workers.train.crowded || w.rng.IntN(8) == 0)
	case n < 80:
		w.work()
	case n < 86:
		w.submit()
	case n < 92:
		w.help(false)
	case n < 94:
		w.fire()
	case n < 95:
		if w.people.fickle || w.rng.IntN(3) == 0 {
			w.meddle()
		}
	case n < 97 && w.people.fickle:
		w.meddle()
	case n < 99:
		w.pushed()
	default:
		w.loseMemory()
	}
}

// deliver gives an input to a runner, which acknowledges it if all went well,
// and returns false if there is none. While there are faults, inputs come in
// any order, and some come again after they were handled.
func (w *world) deliver() bool {
	if len(w.inputs) == 0 {
		return false
	}
	i := 0
	if w.faults && w.rng.IntN(3) == 0 {
		i = w.rng.IntN(len(w.inputs))
	}
	ev := w.inputs[i]
	if w.rng.IntN(12) == 0 {
		w.turn = w.rng.IntN(len(w.runners))
	}
	n := w.turn
	crashed := false
	ok := w.alive(n, func(d *machine.Driver) error {
		crashed = true
		ruling, err := d.Decide(context.Background(), ev.Event, ev.again)
		crashed = false
		if err := w.shelf.Make(d, forge.Key{Project: project}); !versions.Refused(err) {
			w.firstViolation = errors.Join(w.firstViolation, err)
		}
		if err == nil && ruling.Decision != forge.Applied {
			w.log("%s by %s: %s: %s", ruling.Decision, ev.To, facts.Describe(ev.Event), ruling.Reason)
		}
		w.point()
		return err
	})
	ev.again = true
	switch {
	case ok:
		if !w.chance(20) {
			// Inputs were only appended meanwhile, so the place is the same.
			w.inputs = slices.Delete(w.inputs, i, i+1)
		}
	case crashed:
		w.log("runner %d crashed", n)
		if w.rng.IntN(2) == 0 {
			w.recover(n) // otherwise the other one goes on alone for a while
		}
	}
	return true
}

// fire moves the clock to the next timer, and puts its event on the stream. It
// returns false if there is no timer. Nothing else moves the clock.
func (w *world) fire() bool {
	if len(w.timers) == 0 {
		return false
	}
	i := 0
	for j, t := range w.timers {
		if t.At.Before(w.timers[i].At) {
			i = j
		}
	}
	t := w.timers[i]
	w.timers = slices.Delete(w.timers, i, i+1)
	if t.At.After(w.now) {
		w.now = t.At
	}
	w.inputs = append(w.inputs, &input{Event: forge.Event{ID: "timer/" + t.Key, To: t.To, Message: &forge.TimerFired{Key: t.Key, At: t.At}}})
	return true
}

// state returns a line for each machine, for the messages of failures.
func (w *world) state() string {
	var s strings.Builder
	for _, key := range w.keys {
		sum := w.summary(key)
		fmt.Fprintf(&s, "\n%s: %s %s %q open %v", key, sum.Status, sum.Activity, sum.Reason, sum.Open)
	}
	return s.String()
}
