package local

import (
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// Observer receives events while they happen. Its methods may be called concurrently,
// and must not block for long.
type Observer interface {
	// Decided receives a record of an intent's journal, and the intent before and
	// after it. Records from before the start are left out.
	Decided(before, after *forge.Summary, rec *forge.Record)
	// Progress receives a line of an attempt's work.
	Progress(p forge.Progress)
	// State receives every intent, once at the start.
	State(all []forge.Summary)
	// Notice receives a line for the person that is about no intent.
	Notice(line string)
}

// Outcome is the state of the intents at the end of a run.
type Outcome struct {
	Intents []forge.Summary
	// Problems are those of a person's files.
	Problems []forgedir.Problem
	// Interrupted says that the context ended before the work did.
	Interrupted bool
	// Joined says that the run is another process's, and goes on.
	Joined bool
}

// watch follows the journals of a project and folds them into views.
type watch struct {
	bus     *bus.Bus
	project forge.ProjectID
	// only is the intent whose end is waited for; empty: all of them.
	only     forge.IntentID
	observer *waitNotices
	views    *views
	// dueSince is when quiet first found timers whose time has come; zero if there are none.
	dueSince time.Time
	// caughtUp is closed when views has everything from before the start.
	caughtUp chan struct{}
	// changed holds an element after a change.
	changed chan struct{}
}

// newWatch returns a watch that run starts.
func newWatch(b *bus.Bus, project forge.ProjectID, observer Observer) *watch {
	return &watch{
		bus: b, project: project, observer: newWaitNotices(observer), views: newViews(),
		caughtUp: make(chan struct{}), changed: make(chan struct{}, 1),
	}
}

// run follows until ctx ends.
func (w *watch) run(ctx context.Context) error {
	if err := w.bus.Live.FollowProgress(ctx, w.project, w.observer.Progress); err != nil {
		return err
	}
	live := false
	return w.bus.Journal.Follow(ctx, w.project, 0, journal.Follower{
		Record: func(key forge.Key, seq uint64, rec forge.Record) error {
			before, after := w.views.apply(key, seq, &rec)
			if live {
				w.observer.Decided(&before, &after, &rec)
			}
			w.signalChange()
			return nil
		},
		Project: func(key forge.Key, seq uint64, rec forge.Record) error {
			w.views.apply(key, seq, &rec)
			w.signalChange()
			return nil
		},
		Broken: w.views.breaks,
		CaughtUp: func() error {
			live = true
			all, _ := w.views.summaries()
			w.observer.State(all)
			for _, key := range w.views.damaged() {
				w.observer.Notice(damage(key).Error())
			}
			close(w.caughtUp)
			return nil
		},
	})
}

// damage says that records of a machine are missing, and what to do.
func damage(key forge.Key) forgedir.Problem {
	return forgedir.Problem{
		Path: storeDir, Field: key.String(), Reason: machine.ErrDamaged.Error(),
		Hint: "without a backup, see pfl-forge recover --dry-run",
	}
}

// noticeWaits reports why nothing happens, once nothing has been reported for a
// while.
func (w *watch) noticeWaits() {
	all, _ := w.views.summaries()
	w.observer.noticeIfQuiet(time.Now(), append(all, w.views.projects()...))
}

// signalChange wakes pause.
func (w *watch) signalChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// quiet returns whether nothing can go on without a person. The order matters: once
// no event is left to decide on, only workers, timers and people can bring a new one,
// and an intent that waits for a worker or a timer is not idle.
func (w *watch) quiet(ctx context.Context) (bool, error) {
	if !w.allIdle() {
		return false, nil
	}
	if idle, err := w.bus.Events.Idle(ctx); !idle || err != nil {
		return false, err
	}
	if idle, err := w.idleByJournal(ctx); !idle || err != nil {
		return false, err
	}
	now := time.Now()
	if !w.views.due(now, w.concerns) {
		w.dueSince = time.Time{}
		return true, nil
	}
	if w.dueSince.IsZero() {
		w.dueSince = now
	}
	return now.Sub(w.dueSince) >= duePatience, nil
}

// duePatience is how long a run waits for timers to fire whose time has come.
// The server does so within a second of its start.
const duePatience = 10 * time.Second

// allIdle returns whether, according to the views, everything that is waited for is
// idle.
func (w *watch) allIdle() bool {
	all, idle := w.views.summaries()
	if w.only == "" {
		return idle
	}
	all = append(all, w.views.projects()...)
	known := false
	for i := range all {
		known = known || all[i].Key.Intent == w.only
		if w.concerns(all[i].Key) && !all[i].Idle {
			return false
		}
	}
	return known
}

// concerns returns whether a machine is waited for. Projects always are: they merge,
// and reflect on what ended.
func (w *watch) concerns(key forge.Key) bool {
	return w.only == "" || key.IsProject() || key.Intent == w.only
}

// idleByJournal returns whether everything that is waited for is idle by its last
// decision, and the views include that decision.
func (w *watch) idleByJournal(ctx context.Context) (bool, error) {
	all, err := w.last(ctx)
	if err != nil {
		return false, err
	}
	damaged := w.views.damaged() // nothing is decided on those
	for i := range all {
		if !w.concerns(all[i].Key) {
			continue
		}
		if !all[i].Idle && !slices.Contains(damaged, all[i].Key) || !w.views.shows(&all[i]) {
			return false, nil
		}
	}
	return true, nil
}

// viewsCurrent returns whether the views include every decision.
func (w *watch) viewsCurrent(ctx context.Context) (bool, error) {
	all, err := w.last(ctx)
	if err != nil {
		return false, err
	}
	for i := range all {
		if !w.views.shows(&all[i]) {
			return false, nil
		}
	}
	return true, nil
}

// last returns the summaries of all machines from the journals.
func (w *watch) last(ctx context.Context) ([]forge.Summary, error) {
	intents, err := w.bus.Journal.Summaries(ctx, w.project)
	if err != nil {
		return nil, err
	}
	projects, err := w.bus.Journal.ProjectSummaries(ctx, w.project)
	return append(intents, projects...), err
}

// pause waits for a change, at least least, so that many changes are handled
// together, and at most most.
func (w *watch) pause(ctx context.Context, least, most time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(least):
	}
	select {
	case <-ctx.Done():
	case <-w.changed:
	case <-time.After(most):
	}
}
