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
	"github.com/pfl-forge/pfl-forge/bus/changes"
)

const (
	// attempts bounds how often the delivery of a message is tried.
	attempts = 8
	// claimEvery is the interval at which the server is asked not to deliver queued changes again.
	claimEvery = 10 * time.Second
	// flushTimeout bounds the deliveries after a stop. The rest follows after the next start.
	flushTimeout = 5 * time.Second
)

// Notifier delivers notifications to the targets of a Config. All fields but Backoff are
// required, and none may change while it runs.
type Notifier struct {
	// Bus publishes the changes of intents.
	Bus *bus.Bus
	// Log receives failed deliveries. They hold no URL and no secret.
	Log *slog.Logger
	// Config lists the targets.
	Config *Config
	// Backoff returns how long to wait after so many failures of one message. nil means 1s,
	// doubled each time, up to 64s.
	Backoff func(failures int) time.Duration
}

// Prepare registers every target with the server, so that it gets all changes that are
// published from now on, also those before Run. It may be called again.
func (n *Notifier) Prepare(ctx context.Context) error {
	for i := range n.Config.Targets {
		if err := n.Bus.Changes.AddFollower(ctx, n.Config.Targets[i].followerConfig()); err != nil {
			return fmt.Errorf("notifications: %w", err)
		}
	}
	return nil
}

// Run delivers notifications until ctx ends, and then what has changed before that, for five
// seconds at most. It returns when nothing is running any more.
func (n *Notifier) Run(ctx context.Context) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for i := range n.Config.Targets {
		wg.Go(func() {
			w := &worker{Notifier: n, target: &n.Config.Targets[i], client: client, wake: make(chan struct{}, 1)}
			w.run(ctx)
		})
	}
	wg.Wait()
}

// followerConfig returns the follower of a target, with a filter for the changes that its
// kinds are made of.
func (t *Target) followerConfig() changes.Follower {
	cfg := changes.Follower{Name: followerName(t.Name)}
	for _, kind := range Kinds() {
		if len(t.On) > 0 && !slices.Contains(t.On, kind) {
			continue
		}
		for _, what := range map[Kind][]changes.Kind{
			KindWaiting: {changes.Waiting}, KindBudget: {changes.Waiting}, KindFailed: {changes.Blocked, changes.Error}, KindDone: {changes.Done},
		}[kind] {
			if !slices.Contains(cfg.Whats, what) {
				cfg.Whats = append(cfg.Whats, what)
			}
		}
	}
	return cfg
}

// matches reports whether a target is to be notified of a change.
func (t *Target) matches(c *changes.Delivered) bool {
	return kindOf(c) != "" && (len(t.On) == 0 || slices.Contains(t.On, kindOf(c))) && (len(t.Projects) == 0 || slices.Contains(t.Projects, c.Project))
}

// worker delivers the notifications of one target, one after the other. Changes arrive on
// the bus's goroutine (enqueue), a second one keeps them claimed, and run delivers them.
type worker struct {
	*Notifier
	target *Target
	client *http.Client
	// wake has room for one signal: a change was added to the queue.
	wake chan struct{}

	mu sync.Mutex
	// queue holds the changes that are not acknowledged, in their order. Those of the message
	// that is being delivered are at its beginning.
	queue []*changes.Delivered

	// window is the beginning of the present window, and sent counts its messages. Only run uses
	// them.
	window time.Time
	sent   int
}

// run delivers until ctx ends, and then what is left. Changes that it could not deliver go
// back to the server.
func (w *worker) run(ctx context.Context) {
	following, leave := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Bus.Changes.Follow(following, w.target.followerConfig(), w.enqueue); err != nil {
			w.Log.ErrorContext(ctx, "a notification target failed", "target", w.target.Name, "error", err)
		}
	})
	wg.Go(func() { w.keepClaimed(following) })
	for w.waitForWork(ctx) {
		list := w.nextBatch(ctx)
		if ctx.Err() == nil {
			_ = w.deliver(ctx, list, attempts)
		}
	}
	w.flush(context.WithoutCancel(ctx))
	leave()
	wg.Wait()
	for _, t := range w.queue {
		_ = t.Again() // another replica, or the next start, delivers it
	}
}

// enqueue puts a change into the queue, or acknowledges it if the target does not want it.
func (w *worker) enqueue(t *changes.Delivered) {
	if !w.target.matches(t) {
		if err := t.Done(); err != nil {
			w.Log.Debug("cannot report that a change is not wanted", "error", err)
		}
		return
	}
	w.mu.Lock()
	w.queue = append(w.queue, t)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// keepClaimed tells the server again and again that queued changes are being worked on, so
// that it does not give them to another replica.
func (w *worker) keepClaimed(ctx context.Context) {
	tick := time.NewTicker(claimEvery)
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

// queued returns a copy of the queue.
func (w *worker) queued() []*changes.Delivered {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.queue)
}

// waitForWork waits until the queue is not empty. It is false when ctx ends.
func (w *worker) waitForWork(ctx context.Context) bool {
	for len(w.queued()) == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-w.wake:
		}
	}
	return ctx.Err() == nil
}

// nextBatch returns the changes of the next message, which are at the beginning of the queue:
// one, or, when the window has had its number of messages, all that come until it is over.
func (w *worker) nextBatch(ctx context.Context) []*changes.Delivered {
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

// deliver delivers one message about the changes at the beginning of the queue, in at most
// so many attempts, and removes them from the queue. They become dead letters if no further
// attempt makes sense. It returns an error, and leaves the queue as it is, if the message
// should be tried again later.
func (w *worker) deliver(ctx context.Context, list []*changes.Delivered, limit int) error {
	m := messageOf(list[0])
	if len(list) > 1 {
		var err error
		if m, err = digestOf(list, time.Now()); err != nil {
			return err
		}
	}
	w.sent++
	err := w.sendWithRetries(ctx, m, limit)
	if _, permanent := errors.AsType[*permanentError](err); err != nil && !permanent && (ctx.Err() != nil || limit < attempts) {
		return err
	}
	for _, t := range list {
		var ackErr error
		if err == nil {
			ackErr = t.Done()
		} else {
			ackErr = t.Drop(ctx, fmt.Sprintf("notification %s: %v", w.target.Name, err))
		}
		if ackErr != nil {
			w.Log.WarnContext(ctx, "a notification may come twice", "target", w.target.Name, "event", t.ID, "error", ackErr)
		}
	}
	if err != nil {
		w.Log.ErrorContext(ctx, "a notification cannot be delivered", "target", w.target.Name, "event", m.id, "error", err)
	}
	w.mu.Lock()
	w.queue = slices.Delete(w.queue, 0, len(list))
	w.mu.Unlock()
	return nil
}

// sendWithRetries sends a message, in at most so many attempts. An attempt that has begun is
// finished also when ctx ends: its result decides whether the message is sent again.
func (w *worker) sendWithRetries(ctx context.Context, m message, limit int) error {
	for failures := 1; ; failures++ {
		err := w.target.send(context.WithoutCancel(ctx), w.client, m)
		if _, permanent := errors.AsType[*permanentError](err); err == nil || permanent || failures >= limit {
			return err
		}
		pause := w.backoff(failures)
		if later, ok := errors.AsType[*retryAfterError](err); ok {
			pause = later.after
		}
		w.Log.WarnContext(ctx, "a notification was not delivered; trying again", "target", w.target.Name, "event", m.id, "after", pause, "error", err)
		if sleep(ctx, pause) != nil {
			return err
		}
	}
}

// backoff returns how long to wait after so many failures.
func (w *worker) backoff(failures int) time.Duration {
	if w.Backoff != nil {
		return w.Backoff(failures)
	}
	return time.Second << min(failures-1, 6)
}

// flush delivers, after the end of Run's context, what was published before it. It waits for
// changes that the server has not delivered yet, but for no window, and tries each message
// once.
func (w *worker) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	for ctx.Err() == nil {
		behind, err := w.Bus.Changes.Behind(ctx, followerName(w.target.Name))
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
		if err := w.deliver(ctx, list, 1); err != nil {
			w.Log.WarnContext(ctx, "a notification waits for the next start", "target", w.target.Name, "error", err)
			return
		}
	}
}

// sleep waits, or returns the error of ctx when that ends before.
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
