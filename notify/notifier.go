package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
)

const (
	// attempts is how often a notification is tried.
	attempts = 8
	// holdEvery is how often the server is told that changes are not forgotten.
	holdEvery = 10 * time.Second
	// flushTime bounds the end: what cannot be told by then is told after the next start.
	flushTime = 5 * time.Second
)

// Notifier tells people.
type Notifier struct {
	Bus    *bus.Bus
	Log    *slog.Logger
	Config *Config
	// Backoff is how long to wait after a number of failures; nil: 1s, doubled each time.
	Backoff func(failures int) time.Duration
}

// Prepare makes every target known, so that it is told of all that changes from now on.
func (n *Notifier) Prepare(ctx context.Context) error {
	for i := range n.Config.Targets {
		if err := n.Bus.AddFollower(ctx, n.Config.Targets[i].follows()); err != nil {
			return fmt.Errorf("notifications: %w", err)
		}
	}
	return nil
}

// Run tells people until ctx ends, and then what has changed before that.
func (n *Notifier) Run(ctx context.Context) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	var running sync.WaitGroup
	for i := range n.Config.Targets {
		running.Go(func() {
			w := &worker{Notifier: n, target: &n.Config.Targets[i], client: client, came: make(chan struct{}, 1)}
			w.run(ctx)
		})
	}
	running.Wait()
}

func (t *Target) follows() bus.FollowerConfig {
	cfg := bus.FollowerConfig{Name: follower(t.Name)}
	for _, kind := range Kinds() {
		if len(t.On) > 0 && !slices.Contains(t.On, kind) {
			continue
		}
		for _, what := range map[Kind][]bus.What{
			KindWaiting: {bus.WhatWaiting}, KindBudget: {bus.WhatWaiting}, KindFailed: {bus.WhatBlocked, bus.WhatError}, KindDone: {bus.WhatDone},
		}[kind] {
			if !slices.Contains(cfg.Whats, what) {
				cfg.Whats = append(cfg.Whats, what)
			}
		}
	}
	return cfg
}

// wants says whether a target is to be told of a change.
func (t *Target) wants(c *bus.Told) bool {
	return kindOf(c) != "" && (len(t.On) == 0 || slices.Contains(t.On, kindOf(c))) && (len(t.Projects) == 0 || slices.Contains(t.Projects, c.Project))
}

// worker tells one target.
type worker struct {
	*Notifier
	target *Target
	client *http.Client
	came   chan struct{} // something is in the queue

	mu    sync.Mutex
	queue []*bus.Told // not told yet; those that are being told are at its beginning

	window time.Time // when the present one began
	sent   int       // in it
}

func (w *worker) run(ctx context.Context) {
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Bus.FollowChanges(following, w.target.follows(), w.take); err != nil {
			w.Log.Error("a target of notifications is not told", "target", w.target.Name, "error", err)
		}
	})
	running.Go(func() { w.hold(following) })
	for w.next(ctx) {
		list := w.ready(ctx)
		if ctx.Err() == nil {
			_ = w.tell(ctx, list, attempts)
		}
	}
	w.flush(context.WithoutCancel(ctx))
	leave()
	running.Wait()
	for _, t := range w.queue {
		_ = t.Again() // somebody else, or the next start, tells it
	}
}

// take puts a change into the queue.
func (w *worker) take(t *bus.Told) {
	if !w.target.wants(t) {
		if err := t.Done(); err != nil {
			w.Log.Debug("cannot say that a change is not wanted", "error", err)
		}
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, t)
	w.mu.Unlock()
	select {
	case w.came <- struct{}{}:
	default:
	}
}

// hold keeps the server from giving what is in the queue to others.
func (w *worker) hold(ctx context.Context) {
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range w.queued() {
			_ = t.Hold() // or it comes again
		}
	}
}

func (w *worker) queued() []*bus.Told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queue)
}

// next waits until there is something to tell, or ctx ends.
func (w *worker) next(ctx context.Context) bool {
	for len(w.queued()) == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-w.came:
		}
	}
	return ctx.Err() == nil
}

// ready returns what is to be told in one notification: one change, or, when there were
// enough, all that come until the window is over.
func (w *worker) ready(ctx context.Context) []*bus.Told {
	if time.Since(w.window) >= w.target.Window {
		w.window, w.sent = time.Now(), 0
	}
	if w.sent < w.target.Most {
		return w.queued()[:1]
	}
	if sleep(ctx, time.Until(w.window.Add(w.target.Window))) == nil {
		w.window, w.sent = time.Now(), 0
	}
	return w.queued()
}

// tell delivers one notification about changes at the beginning of the queue. After an
// error they stay there, unless trying again does not help, or was tried often enough:
// then they are among the dead letters.
func (w *worker) tell(ctx context.Context, list []*bus.Told, most int) error {
	m := single(list[0])
	if len(list) > 1 {
		var err error
		if m, err = several(list, time.Now()); err != nil {
			return err
		}
	}
	w.sent++
	err := w.try(ctx, m, most)
	if _, useless := errors.AsType[*uselessError](err); err != nil && !useless && (ctx.Err() != nil || most < attempts) {
		return err
	}
	for _, t := range list {
		var told error
		if err == nil {
			told = t.Done()
		} else {
			told = t.Drop(ctx, fmt.Sprintf("notification %s: %v", w.target.Name, err))
		}
		if told != nil {
			w.Log.Warn("a notification may come twice", "target", w.target.Name, "event", t.ID, "error", told)
		}
	}
	if err != nil {
		w.Log.Error("a notification cannot be delivered", "target", w.target.Name, "event", m.id, "error", err)
	}
	w.mu.Lock()
	w.queue = slices.Delete(w.queue, 0, len(list))
	w.mu.Unlock()
	return nil
}

// try delivers a notification, several times if it must. An attempt that has begun goes
// on when ctx ends, so that nobody is told twice.
func (w *worker) try(ctx context.Context, m message, most int) error {
	for failures := 1; ; failures++ {
		err := w.target.send(context.WithoutCancel(ctx), w.client, m)
		if _, useless := errors.AsType[*uselessError](err); err == nil || useless || failures >= most {
			return err
		}
		pause := w.backoff(failures)
		if later, ok := errors.AsType[*laterError](err); ok {
			pause = later.after
		}
		w.Log.Warn("a notification was not delivered; trying again", "target", w.target.Name, "event", m.id, "after", pause, "error", err)
		if sleep(ctx, pause) != nil {
			return err
		}
	}
}

func (w *worker) backoff(failures int) time.Duration {
	if w.Backoff != nil {
		return w.Backoff(failures)
	}
	return time.Second << min(failures-1, 6)
}

// flush tells at the end what changed before it, without waiting for a window.
func (w *worker) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	for ctx.Err() == nil {
		behind, err := w.Bus.Behind(ctx, follower(w.target.Name))
		list := w.queued()
		if err != nil || behind > len(list) && sleep(ctx, 5*time.Millisecond) == nil {
			if err != nil {
				return
			}
			continue // others come
		}
		if len(list) == 0 {
			return
		}
		if w.sent < w.target.Most {
			list = list[:1]
		}
		if err := w.tell(ctx, list, 1); err != nil {
			w.Log.Warn("a notification waits for the next start", "target", w.target.Name, "error", err)
			return
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
