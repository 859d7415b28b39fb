// Package runner is the service that takes every decision: it reads events, has
// the rules of package flow decide on them, journals the decisions and
// dispatches their effects. It runs no agent, touches no repository, and may
// run in as many copies as one likes: they need no leader.
//
// runner.go has the way of an event. door.go lets submissions in as far as quotas
// have room, rules.go chooses the version of the rules, sign.go signs what they claim
// of a merge when it is dispatched, snapshots.go keeps states of projects and open.go
// which intents are open, so that a start reads little. tell.go publishes changes of
// intents and notifies people, serve.go answers who looks, observe.go reads the state
// of the installation for metrics, and facts.go what keeps work waiting.
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// cachedMachines bounds how many machines a runner keeps in memory.
const cachedMachines = 2048

// Config says what a runner works with.
type Config struct {
	// Bus is connected; Run creates the streams that are missing.
	Bus *bus.Bus
	// Log receives decisions at debug level, refusals at info.
	Log *slog.Logger
	// Serve says that this runner answers requests of other systems.
	Serve bool
	// Notify says which people are notified of decisions that wait for them; nil:
	// none.
	Notify *notify.Config
	// Key signs which plan a merge follows, and who approved it; nil: nothing is signed.
	Key proof.Source
	// Authors proves by signatures who sent a request or a result; nil: nothing
	// is proven, where accounts have no keys.
	Authors *signed.Keys
	// Quotas bound the open intents, and the calls of projects; the zero value has the defaults.
	Quotas quota.Limits
	// OneProject says that the server has no other project with which one would
	// take turns at the workers.
	OneProject bool
	// Ready, if not nil, is called once, when everything that was under way is in
	// force again.
	Ready func()
	// Metrics may be nil: then nothing is measured.
	Metrics *telemetry.Recorder
	// ObserveEvery is how old the state of the installation is at most, as metrics show it;
	// 0: 15 s.
	ObserveEvery time.Duration
	// SnapshotEvery is after how many records the state of a project is kept anew; 0: 2,000.
	SnapshotEvery int
	// Rules says by which version of the rules is decided.
	Rules RulesConfig
}

// Run makes the streams and consumers, for which it waits while the server cannot make
// them, decides on events until ctx ends, and returns when the last decision is
// dispatched. Any number of runners may work on one store: the journal lets only one
// of them win each decision.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Bus.AwaitStreams(ctx); err != nil {
		return err
	}
	// Before the first decision, so that no command is stored which a bound would have held.
	if !cfg.OneProject || cfg.Quotas.Calls > 0 {
		cfg.Bus.Turns.Begin(cfg.Quotas.Calls)
	}
	kept, known := newSnapshots(&cfg), &runs{}
	if cfg.Metrics.Tracing() {
		ctx = logging.Traces(ctx, known.trace)
	}
	r := &runner{
		bus:     cfg.Bus,
		log:     cfg.Log,
		metrics: cfg.Metrics,
		driver: machine.NewDriver(ledger{cfg.Bus.Journal, cfg.Metrics, kept, known}, notary{cfg.Bus.Effects, cfg.Key}, func() time.Time {
			return time.Now().UTC()
		}, cachedMachines),
		snapshots: kept,
		ballot:    newBallot(cfg.Rules),
		notify:    cfg.Notify,
	}
	r.door = newDoor(cfg.Bus.Journal, r.keptOpen, cfg.Quotas)
	r.driver.Resume(kept)
	r.driver.Obey(r.ballot.Active)
	if !cfg.Rules.Alone {
		if known, err := cfg.Bus.Journal.Projects(ctx); err == nil && len(known) == 0 { // asked before anything is decided
			r.ballot.empty()
		}
	}
	told := startNotifying(ctx, &cfg)
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		cfg.Bus.Guard(ctx, func(ctx context.Context) error {
			if err := r.recover(ctx); err != nil {
				return err
			}
			if cfg.Ready != nil {
				cfg.Ready()
				cfg.Ready = nil
			}
			return nil
		})
	}()
	var serving sync.WaitGroup
	serving.Go(func() { r.keepSnapshots(ctx) })
	serving.Go(func() { r.bus.Turns.Run(ctx) })
	serving.Go(func() { r.watchRules(ctx) })
	serving.Go(func() { r.observe(ctx, cmp.Or(cfg.ObserveEvery, observeEvery)) })
	if cfg.Serve {
		serving.Go(func() { r.serve(ctx, cfg.Authors) })
	}
	cfg.Bus.Events.Consume(ctx, decide.Config{Authors: cfg.Authors, Together: r.ballot.Together, Settings: r.ballot.Settings}, r.handle)
	<-guarded
	serving.Wait()
	told()
	return nil
}

// runner is the state of one Run.
type runner struct {
	bus     *bus.Bus
	log     *slog.Logger
	metrics *telemetry.Recorder
	driver  *machine.Driver
	door    *door
	// snapshots are those of projects.
	snapshots *snapshots
	// ballot has the version of the rules for new decisions.
	ballot *ballot
	// notify are the notifications, which settings name.
	notify *notify.Config
}

// handle decides on one event and answers its sender. An event that cannot be decided
// on is delivered again, later each time.
func (r *runner) handle(ctx context.Context, d *decide.Delivery) error {
	if d.Attempt > 1 {
		r.metrics.Redelivered(telemetry.KindEvent)
	}
	ruling, err := r.decide(ctx, d)
	if errors.Is(err, machine.ErrDamaged) {
		return bus.Terminate(err.Error())
	}
	if err != nil {
		if ctx.Err() == nil {
			r.log.WarnContext(ctx, "cannot decide; the event comes again", "event", d.Event.ID, "error", err)
		}
		if _, newer := errors.AsType[*bus.UnknownError](err); newer {
			return bus.Retry(time.Minute, err) // a newer runner has to take it
		}
		return bus.Retry(min(time.Duration(d.Attempt)*100*time.Millisecond, 10*time.Second), err)
	}
	if result := forge.As[*forge.Result](d.Event.Message); result != nil && ruling.Decision != forge.Refused {
		if err := r.bus.Turns.Answered(ctx, result); err != nil {
			return bus.Retry(time.Second, fmt.Errorf("the call of a result is over: %w", err))
		}
	}
	r.metrics.Decided(&d.Event, ruling.Decision)
	level := slog.LevelDebug
	if ruling.Decision == forge.Refused {
		level = slog.LevelInfo
	}
	r.log.Log(ctx, level, "decided", "event", d.Event.ID, "decision", ruling.Decision, "reason", ruling.Reason)
	d.Respond(ctx, ruling)
	r.traceEnd(ctx, &d.Event, ruling.Decision)
	return nil
}

// decide decides on an event, unless it is a new submission that a quota has no
// room for. That is refused here and not by the rules: they see one machine, and
// a refusal that is journaled could not be taken back by the same event later.
func (r *runner) decide(ctx context.Context, d *decide.Delivery) (forge.Ruling, error) {
	submit := forge.As[*forge.Submit](d.Event.Message)
	if submit == nil || !d.Asked {
		return r.driver.Decide(ctx, d.Event, d.Attempt > 1)
	}
	holder := quota.Holder{Key: d.Event.To}
	if submit.Intent.Source == forge.SourceSystem {
		holder.System = submit.Intent.Origin.System
	}
	leave, full, err := r.door.enter(ctx, holder)
	if err != nil {
		return forge.Ruling{}, err
	}
	if full != nil {
		r.metrics.OverQuota(d.Event.To.Project, full.Field)
		return forge.Ruling{EventID: d.Event.ID, Decision: forge.Refused, Field: full.Field, Reason: full.Error(), Intent: d.Event.To.Intent}, nil
	}
	ruling, err := r.driver.Decide(ctx, d.Event, d.Attempt > 1)
	if err != nil || ruling.Decision != forge.Applied {
		leave() // nobody knows whether it is there, or it is not
	}
	return ruling, err
}

// recover dispatches again what every machine waits for. A machine whose journal
// cannot be read does not delay the others.
func (r *runner) recover(ctx context.Context) error {
	if err := r.bus.Turns.Restore(ctx); err != nil {
		return err
	}
	defer r.bus.Turns.Again()()
	summaries, err := r.bus.Journal.ProjectSummaries(ctx, "")
	failures := []error{err}
	open := map[forge.Key]bool{}
	for _, project := range summaries {
		l, err := r.driver.Recover(ctx, project.Key)
		failures = append(failures, r.skipUnreadable(ctx, project.Key, err))
		if l == nil {
			continue
		}
		r.ballot.saw(l.Machine.Rules())
		// An intent that ended is among them if the project was not told yet.
		for _, id := range l.Machine.(*projects.Project).Active() {
			open[forge.Key{Project: project.Key.Project, Intent: id}] = true
		}
		r.resumed(ctx, project.Key, l)
	}
	now, before, err := r.open(ctx)
	failures = append(failures, err)
	for _, key := range now.Intents {
		open[key] = true
	}
	r.listed(&now, &before)
	for _, key := range slices.SortedFunc(maps.Keys(open), func(a, b forge.Key) int {
		return strings.Compare(a.String(), b.String())
	}) {
		_, err := r.driver.Recover(ctx, key)
		failures = append(failures, r.skipUnreadable(ctx, key, err))
	}
	if n := len(summaries) + len(open); n > 0 {
		r.log.InfoContext(ctx, "recovered", "machines", n)
	}
	return errors.Join(failures...)
}

// skipUnreadable logs an error that a retry does not mend, and returns nil for it: a
// newer version wrote the journal, or some of it is lost. It returns other errors
// unchanged.
func (r *runner) skipUnreadable(ctx context.Context, key forge.Key, err error) error {
	ctx = logging.Machine(ctx, key)
	if _, newer := errors.AsType[*bus.UnknownError](err); newer {
		r.log.WarnContext(ctx, "a newer version decided on this; it is left alone until a runner of that version is there", "error", err)
		return nil
	}
	if errors.Is(err, machine.ErrDamaged) {
		r.log.ErrorContext(ctx, "nothing is decided on this any more", "error", err)
		return nil
	}
	return err
}

// ledger gives the bus's journal the shape that package machine asks for.
type ledger struct {
	*journal.Journal

	metrics   *telemetry.Recorder
	snapshots *snapshots
	runs      *runs
}

// After returns a journal as the bus does, and notes the run that it is at.
func (j ledger) After(ctx context.Context, key forge.Key, seq uint64) (chain.Tail, error) {
	tail, err := j.Journal.After(ctx, key, seq)
	if n := len(tail.Records); n > 0 {
		j.runs.note(key, tail.Records[n-1].Summary.Run)
	}
	return tail, err
}

// Append appends a record as the bus does, and measures how long that took. A conflict is the
// machine's own error: another runner was faster.
func (j ledger) Append(ctx context.Context, key forge.Key, after chain.Head, rec forge.Record) (chain.Head, error) {
	began := time.Now()
	head, err := j.Journal.Append(ctx, key, after, rec)
	j.metrics.Journaled(time.Since(began), err, errors.Is(err, bus.ErrConflict))
	if errors.Is(err, bus.ErrConflict) {
		return chain.Head{}, machine.ErrConflict
	}
	if _, large := errors.AsType[*bus.TooLargeError](err); large {
		return chain.Head{}, fmt.Errorf("%w: %w", machine.ErrTooLarge, err)
	}
	if err == nil {
		j.snapshots.appended(key)
		j.runs.note(key, rec.Summary.Run)
	}
	return head, err
}
