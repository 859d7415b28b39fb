package local

import (
	"context"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/workspace"
)

// Observer is told what happens, while it happens. Its methods may be called by
// several goroutines, and must not block for long.
type Observer interface {
	// Decided tells of a record of an intent's journal, and of the intent before
	// and after it. Records that were there at the start are not told.
	Decided(before, after *forge.Summary, rec *forge.Record)
	// Progress tells how an attempt goes.
	Progress(p forge.Progress)
	// State tells of every intent, once at the start.
	State(all []forge.Summary)
	// Notice tells a person something else, in one line.
	Notice(line string)
}

// Outcome is how things stand at the end of a run.
type Outcome struct {
	Intents     []forge.Summary
	Problems    []workspace.Problem // of a person's files
	Interrupted bool
	Joined      bool // the run is another process's, and goes on
}

// watch follows the journals of a project.
type watch struct {
	bus      *bus.Bus
	project  forge.ProjectID
	only     forge.IntentID // the one whose rest is waited for; empty: everything's
	observer *waitNotices
	views    *views
	caughtUp chan struct{} // closed when what there was at the start is in views
	changed  chan struct{} // holds an element after a change
}

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
func damage(key forge.Key) workspace.Problem {
	return workspace.Problem{
		Path: storeDir, Field: key.String(), Reason: machine.ErrDamaged.Error(),
		Hint: "without a backup, move " + storeDir + " away and create the unfinished intents again",
	}
}

// explain tells what is waited for, once nothing was to be seen for a while.
func (w *watch) noticeWaits() {
	all, _ := w.views.summaries()
	w.observer.noticeIfQuiet(time.Now(), append(all, w.views.projects()...))
}

// poke says that something changed.
func (w *watch) signalChange() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// quiet says whether nothing can go on without a person. The order matters: once
// no event is left to decide on, only workers, clocks and people can bring a new
// one, and whoever waits for a worker or a clock is not settled.
func (w *watch) quiet(ctx context.Context) (bool, error) {
	if !w.settled() {
		return false, nil
	}
	if idle, err := w.bus.Events.Idle(ctx); !idle || err != nil {
		return false, err
	}
	return w.settledByJournal(ctx)
}

// settled says whether nothing that is waited for can go on without a person, as far as
// the views show.
func (w *watch) settled() bool {
	all, settled := w.views.summaries()
	if w.only == "" {
		return settled
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

// concerns says whether a machine is waited for. The projects always are: they merge, and
// look back at what ended.
func (w *watch) concerns(key forge.Key) bool {
	return w.only == "" || key.IsProject() || key.Intent == w.only
}

// current says whether every machine that is waited for is settled by its last decision,
// and the views show that decision.
func (w *watch) settledByJournal(ctx context.Context) (bool, error) {
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

// shown says whether the views show every decision that there is.
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

// pause waits for a change, or for a while; at least for some time, so that many
// changes are looked at together.
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
