package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// Watcher keeps the messages of one chat, and has its people decide. Run it once.
type Watcher struct {
	cfg Config
	// interactive is nil where the chat is told only.
	interactive Interactive
	ledger      *ledger
	poster      *poster
	decide      *decider
}

// again is when something that failed is tried once more.
const again = time.Minute

// New returns a Watcher.
func New(cfg Config) *Watcher {
	for d, usual := range map[*time.Duration]time.Duration{
		&cfg.Every: 5 * time.Minute, &cfg.Debounce: 2 * time.Second, &cfg.Pace: time.Second, &cfg.Lease: 30 * time.Second,
	} {
		if *d == 0 {
			*d = usual
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	w := &Watcher{cfg: cfg, ledger: &ledger{
		name: cfg.Name, lease: cfg.Lease, now: cfg.Now, store: cfg.Deliveries.Store, things: map[string]*thing{},
	}}
	w.interactive, _ = cfg.Chat.(Interactive)
	w.poster = newPoster(&w.cfg, w.interactive, w.ledger)
	w.decide = newDecider(&w.cfg, w.interactive, w.ledger, w.poster.hint)
	return w
}

// Run watches until ctx ends. It returns an error only for a chat that does not let us in.
func (w *Watcher) Run(ctx context.Context) error {
	if err := w.begin(ctx); err != nil || ctx.Err() != nil {
		return ended(ctx, err)
	}
	heard := make(chan struct{}, 1)
	if err := w.cfg.Deliveries.OnDelivery(ctx, func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	}); err != nil {
		return ended(ctx, err)
	}
	// The claims and marks in the stream are known before anything is done: else a start
	// would do again whatever was done before it, and only find out by the ids of wishes.
	for !w.decide.read(ctx) {
		if !sleep(ctx, actAgain) {
			return nil
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range w.cfg.projects() {
		group.Go(func() error { w.follow(ctx, p); return nil })
	}
	group.Go(func() error { w.poster.run(ctx); return nil })
	group.Go(func() error { w.decide.run(ctx, heard); return nil })
	return group.Wait()
}

// ended returns the error of a watcher; nil if it only says that the watcher was ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the watcher was ended: the error is that of the context
	}
	return err
}

// begin finds out who we are, for as long as that takes.
func (w *Watcher) begin(ctx context.Context) error {
	if w.interactive == nil {
		return nil
	}
	for {
		err := w.interactive.Introduce(ctx)
		parked, ok := errors.AsType[*forges.ParkedError](err)
		if !ok {
			return err
		}
		w.cfg.Log.WarnContext(ctx, "the chat is not there yet", "chat", w.cfg.Name, "error", err)
		if !sleep(ctx, parked.Until.Sub(w.cfg.Now())) {
			return ctx.Err()
		}
	}
}

// follow makes hints of the changes of a project's intents, until ctx ends.
func (w *Watcher) follow(ctx context.Context, p forge.ProjectID) {
	for ctx.Err() == nil {
		err := w.cfg.Changes.Watch(ctx, p, changes.Now, func() {}, func(c changes.Published) error {
			if key, ok := changed(c.Event); ok {
				w.poster.hint(key)
			}
			return nil
		})
		if err != nil {
			w.cfg.Log.WarnContext(ctx, "cannot follow the changes of a project; the next sweep makes up for it", "chat", w.cfg.Name,
				"project", string(p), "error", err)
			sleep(ctx, again)
		}
	}
}

// changed returns the intent of a change.
func changed(event []byte) (forge.Key, bool) {
	var e struct {
		Data struct {
			Project string `json:"project"`
			Intent  string `json:"intent"`
		} `json:"data"`
	}
	if json.Unmarshal(event, &e) != nil { // a change of another version: the sweep looks all the same
		return forge.Key{}, false
	}
	project, err := forge.ParseProjectID(e.Data.Project)
	if err != nil {
		return forge.Key{}, false
	}
	intent, err := forge.ParseIntentID(e.Data.Intent)
	return forge.Key{Project: project, Intent: intent}, err == nil
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// notBefore returns when something that failed may be tried again: at the time that
// the chat says, when the claim of another gateway ends, and otherwise in a minute.
func notBefore(err error, now time.Time) time.Time {
	if parked, ok := errors.AsType[*forges.ParkedError](err); ok {
		return parked.Until
	}
	if held, ok := errors.AsType[*heldError](err); ok {
		return held.until
	}
	return now.Add(again)
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// name returns a key for logs.
func name(k forge.Key) string { return fmt.Sprintf("%s/%s", k.Project, k.Intent) }
