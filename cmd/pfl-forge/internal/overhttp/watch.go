package overhttp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Observer receives records and states, as the observers of package local do.
// Its methods are called one after the other, and should not block for long.
type Observer interface {
	// Decided receives a record of an intent, and the intent before and after it.
	Decided(before, after *forge.Summary, rec *forge.Record)
	// State receives every intent, once at the start.
	State(all []forge.Summary)
}

const (
	// gatherTime is how long changes are gathered before the intents are read.
	gatherTime = 200 * time.Millisecond
	// lookTime is how often the whole project is looked at, if nothing is heard of it.
	lookTime = 15 * time.Second
)

// Watch reports what happens in the project until ctx ends or, with untilQuiet,
// until nothing is left to do without a person: not for the project or, if only is
// not empty, for this intent. What agents say meanwhile is not told. Nothing is
// told twice, and what happened while the connection was away is told after it.
func (c *Client) Watch(ctx context.Context, observer Observer, only forge.IntentID, untilQuiet bool) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{client: c, observer: observer, only: only, seen: map[forge.IntentID]*seen{}, changed: map[forge.IntentID]bool{}, woken: make(chan struct{}, 1)}
	var following sync.WaitGroup
	defer func() { cancel(); following.Wait() }()
	ended := make(chan error, 1)
	following.Go(func() {
		ended <- c.follow(ctx, listener{begun: func() { w.mark("") }, changed: func(id forge.IntentID) { w.mark(id) }})
	})
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-w.woken:
			if err := sleep(ctx, gatherTime); err != nil {
				return err
			}
		case <-tick.C:
			w.mark("")
		}
		quiet, err := w.look(ctx)
		if _, again := c.again(err); err != nil && (!again || !w.reported || ctx.Err() != nil) {
			return err
		} else if err != nil { // it may come back, as the stream of changes may
			w.mark("")
			continue
		}
		if quiet && untilQuiet {
			return nil
		}
	}
}

// watch knows how much was told so far.
type watch struct {
	client   *Client
	observer Observer
	only     forge.IntentID
	// seen has the intents, nil before the first look.
	seen     map[forge.IntentID]*seen
	reported bool // the state

	mu sync.Mutex
	// changed are the intents of which something was heard, "" for perhaps any.
	changed map[forge.IntentID]bool
	// woken has an element if there are some.
	woken chan struct{}
}

// seen is an intent as it was told last.
type seen struct {
	summary forge.Summary
	// records is how many of its records are known; 0 before they were read.
	records int
}

// mark notes that something was heard of an intent, or that anything may have
// happened. It does not block.
func (w *watch) mark(id forge.IntentID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed[id] = true
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// take returns the intents of which something was heard since, and whether
// anything may have happened.
func (w *watch) take() (ids []forge.IntentID, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.changed {
		if id == "" {
			all = true
			continue
		}
		ids = append(ids, id)
	}
	clear(w.changed)
	slices.Sort(ids)
	return ids, all
}

// look tells what happened since the last look, and reports whether nothing is
// left to do. The first look tells the state.
//
// Every look reads the list of all intents. Which of them have changed is seen
// by their times, and so nothing is missed while the stream was cut off, or
// where an event could not be read; the events say when to look.
func (w *watch) look(ctx context.Context) (quiet bool, err error) {
	ids, _ := w.take()
	list, err := w.client.Overview(ctx)
	if err != nil {
		return false, err
	}
	if !w.reported {
		w.reported = true
		for i := range list.Intents {
			w.seen[list.Intents[i].Key.Intent] = &seen{summary: list.Intents[i]}
		}
		w.observer.State(list.Intents)
		return w.quiet(list.Intents, list.Project), nil
	}
	for i := range list.Intents {
		s := &list.Intents[i]
		known := w.seen[s.Key.Intent]
		if known == nil || !known.summary.UpdatedAt.Equal(s.UpdatedAt) || slices.Contains(ids, s.Key.Intent) {
			if err := w.report(ctx, s); err != nil {
				return false, err
			}
		}
	}
	return w.quiet(list.Intents, list.Project), nil
}

// report hands on the records of an intent that are new. Of one that was there
// at the start, these are the ones after its state of then. How many it has is
// known from the first time on, so that only those after them are sent from then
// on. Of one that is too large to be read, the state that the list has is told.
func (w *watch) report(ctx context.Context, now *forge.Summary) error {
	id := now.Key.Intent
	known := w.seen[id]
	if known == nil {
		known = &seen{}
		w.seen[id] = known
	}
	d, records, err := w.client.Whole(ctx, id, known.records)
	if errors.Is(err, ErrLarge) {
		before := known.summary
		known.summary = *now
		w.observer.Decided(&before, now, &forge.Record{Summary: *now})
		return nil
	}
	if err != nil {
		return err
	}
	first := known.records == 0
	known.records += len(records)
	for i := range records {
		r := &records[i]
		if first && !r.Summary.UpdatedAt.After(known.summary.UpdatedAt) {
			continue
		}
		before := known.summary
		known.summary = r.Summary
		w.observer.Decided(&before, &r.Summary, r)
	}
	if d.View.Summary.UpdatedAt.After(known.summary.UpdatedAt) { // whatever was left out of the records
		known.summary = d.View.Summary
	}
	return nil
}

// quiet reports whether nothing is left to do without a person, and all of it was told.
func (w *watch) quiet(all, projects []forge.Summary) bool {
	for i := range projects {
		if !projects[i].Idle {
			return false
		}
	}
	for i := range all {
		s := &all[i]
		if w.only != "" && s.Key.Intent != w.only {
			continue
		}
		known := w.seen[s.Key.Intent]
		if !s.Idle || known == nil || known.summary.UpdatedAt.Before(s.UpdatedAt) {
			return false
		}
	}
	return true
}
