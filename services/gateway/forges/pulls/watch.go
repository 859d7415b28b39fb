package pulls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// Deliveries is the part of *deliveries.Stream that is needed.
type Deliveries interface {
	// OnDelivery calls do whenever there are more.
	OnDelivery(ctx context.Context, do func()) error
	// After hands over those behind a number, and returns the number of the last one.
	After(ctx context.Context, seq uint64, take func(deliveries.Delivery) error) (last uint64, err error)
}

const (
	// firstSweep is how far back the first sweep looks for pull requests that ended,
	// and overlap how far each looks back behind the one before: clocks differ.
	firstSweep = 30 * 24 * time.Hour
	overlap    = 2 * time.Minute
	// again is when something that failed is tried once more, and the least
	// time after which what is known is reported once more; slowest is the most.
	again   = time.Minute
	slowest = time.Hour
)

// pullKey is a pull request that is watched.
type pullKey struct {
	// repository is the name of the settings, which stays when the forge gives another one.
	repository string
	number     int64
}

// watch is a Keeper's memory of what it watches. Nothing of it has to survive the process: the
// first sweep finds all that is open, and all that ended lately, by the marks in the texts.
type watch struct {
	mu    sync.Mutex
	pulls map[pullKey]*tracked
	// due says when to look at a pull request.
	due map[pullKey]time.Time
	// old says whether nothing of a pull request had changed for long at the
	// last sweep that found it.
	old map[pullKey]bool
	// names has the name of each repository, by its number.
	names map[int64]string
	// woken says that there is something new, in the stream of deliveries or
	// among those that are due.
	woken chan struct{}
	// swept is the time up to which a sweep has seen everything, by repository.
	swept map[string]time.Time
	// read is the last delivery that was read, parked when the forge may be
	// asked again, nextSweep when the next sweep is.
	read              uint64
	parked, nextSweep time.Time
}

// newWatch returns an empty watch.
func newWatch() *watch {
	return &watch{
		pulls: map[pullKey]*tracked{}, due: map[pullKey]time.Time{}, old: map[pullKey]bool{}, names: map[int64]string{}, swept: map[string]time.Time{},
		woken: make(chan struct{}, 1),
	}
}

// wake has Run go on.
func (w *watch) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// Run looks at our pull requests when a hook tells of them and at all of them in
// each sweep, and reports what is new, until ctx ends. It begins with a sweep:
// whoever runs again has lost its lease, and another one has had it meanwhile.
func (k *Keeper) Run(ctx context.Context) error {
	k.nextSweep = time.Time{}
	if k.cfg.Deliveries != nil && len(k.cfg.Hooks) > 0 {
		if err := k.cfg.Deliveries.OnDelivery(ctx, k.wake); err != nil && ctx.Err() == nil {
			return err
		}
	}
	for ctx.Err() == nil {
		if now := k.cfg.Now(); !now.Before(k.parked) {
			k.sweep(ctx, now)
			k.deliveries(ctx)
			k.lookAround(ctx)
		}
		k.rest(ctx)
	}
	return nil
}

// failed parks the Keeper if the forge says so, and tells the log.
func (k *Keeper) failed(ctx context.Context, what, where string, err error) {
	if ctx.Err() != nil {
		return
	}
	if parked, ok := errors.AsType[*forges.ParkedError](err); ok {
		k.parked = parked.Until
	}
	k.cfg.Log.WarnContext(ctx, "a look at a pull request failed; there is another one later", "forge", k.cfg.Name, "what", what, "where", where, "error", err)
}

// sweep asks for all pull requests of ours that are open, and for those that ended
// since the last sweep, when it is time for that. That a check has ended is no change
// of a pull request for the forge: those that are open are looked at in any case.
func (k *Keeper) sweep(ctx context.Context, now time.Time) {
	if now.Before(k.nextSweep) {
		return
	}
	next := now.Add(k.cfg.Every)
	var done []string
	for _, name := range k.cfg.Repositories {
		if slices.Contains(done, name) { // two projects can be in one repository
			continue
		}
		done = append(done, name)
		if err := k.sweepOne(ctx, name, now); err != nil {
			k.failed(ctx, "sweep", name, err)
			next = now.Add(min(again, k.cfg.Every))
		}
	}
	k.nextSweep = next
}

// sweepOne is sweep for one repository.
func (k *Keeper) sweepOne(ctx context.Context, name string, now time.Time) error {
	if err := k.Introduce(ctx); err != nil {
		return err
	}
	r, err := k.cfg.Forge.Repository(ctx, name)
	if err != nil {
		return err
	}
	k.names[r.ID] = name
	since := now.Add(-firstSweep)
	if last := k.swept[name]; !last.IsZero() {
		since = last.Add(-overlap)
	}
	list, err := k.cfg.Forge.ChangedPulls(ctx, name, k.self.Login, since)
	if err != nil {
		return err
	}
	for _, c := range list {
		key := pullKey{name, c.Number}
		k.due[key], k.old[key] = now, now.Sub(c.At) > slowest
	}
	k.swept[name] = now
	return nil
}

// deliveries makes looks of what came through the hooks.
func (k *Keeper) deliveries(ctx context.Context) {
	if k.cfg.Deliveries == nil || len(k.cfg.Hooks) == 0 {
		return
	}
	last, err := k.cfg.Deliveries.After(ctx, k.read, func(d deliveries.Delivery) error {
		if !slices.Contains(k.cfg.Hooks, d.Hook) {
			return nil
		}
		h, err := k.cfg.Forge.Hint(d.Event, d.Body)
		if err != nil { // the sweep finds it, whatever this was
			k.cfg.Log.WarnContext(ctx, "cannot read a delivery", "hook", d.Hook, "delivery", d.ID, "error", err)
			return nil
		}
		k.hint(&h)
		return nil
	})
	k.read = max(k.read, last)
	if err != nil && ctx.Err() == nil {
		k.cfg.Log.WarnContext(ctx, "cannot read what came through the hooks; the next sweep makes up for it", "forge", k.cfg.Name, "error", err)
	}
}

// hint has pull requests looked at, unless that is going to happen sooner: one,
// or all that have a commit as their head.
func (k *Keeper) hint(h *forges.Hint) {
	name, at := k.names[h.RepositoryID], k.cfg.Now().Add(k.cfg.Debounce)
	if name == "" {
		return
	}
	look := func(key pullKey) {
		if before, known := k.due[key]; !known || at.Before(before) {
			k.due[key] = at
		}
	}
	if h.Pull {
		look(pullKey{name, h.Number})
	}
	if h.Commit == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	// What was pushed is no head that we know of: a hook of the pull request itself comes as well.
	for key, t := range k.pulls {
		if key.repository == name && t.head == h.Commit {
			look(key)
		}
	}
}

// lookAround looks at each pull request that is due.
func (k *Keeper) lookAround(ctx context.Context) {
	for key, at := range k.due {
		if ctx.Err() != nil || k.cfg.Now().Before(k.parked) {
			return
		}
		if k.cfg.Now().Before(at) {
			continue
		}
		delete(k.due, key)
		err := k.report(ctx, key)
		if errors.Is(err, forges.ErrNotFound) {
			k.cfg.Log.WarnContext(ctx, "a pull request is not there any more", "forge", k.cfg.Name, "repository", key.repository, "number", key.number)
			continue
		}
		if err != nil {
			k.failed(ctx, "look", key.repository, err)
			k.due[key] = k.cfg.Now().Add(again)
		}
	}
}

// report looks at a pull request, and tells what is new about it. A pull
// request of ours without a mark, which a person has taken away, is reported
// again when the attempt that made it is carried out once more.
func (k *Keeper) report(ctx context.Context, key pullKey) error {
	if err := k.Introduce(ctx); err != nil {
		return err
	}
	answers := k.answersOf(key)
	s, l, err := k.snapshot(ctx, key.repository, key.number, k.isQueued(key))
	if err != nil {
		return err
	}
	if l.Author.ID != k.self.ID {
		return nil // everybody can open one, with a mark like ours
	}
	t := k.known(key, l.Body)
	if t == nil {
		return nil
	}
	k.mu.Lock()
	t.queue = t.queue || s.Queue != nil
	k.mu.Unlock()
	now := k.cfg.Now()
	if (unwanted{k}).close(ctx, key, t, s) || (queues{k}).takeOut(ctx, key, s, l) {
		k.due[key] = now
		return nil
	}
	comments{k}.tell(ctx, t, l)
	k.mu.Lock()
	if s.Blocked == "" {
		s.Blocked = t.refusal(s)
	}
	digest := digestOf(s)
	t.head = l.Head
	next := t.at.Add(k.pause(t, s))
	told := t.reported == digest && now.Before(next)
	k.mu.Unlock()
	if told {
		k.lookAgain(key, s, next)
		return nil
	}
	refusal := false
	err = k.cfg.Publish(ctx, forge.Result{To: t.to, Attempt: t.attempt, Replica: k.cfg.Replica, StartedAt: s.Seen, Output: s})
	if refused, ok := errors.AsType[*work.RefusedError](err); ok { // an intent that is not there any more, or never was: the mark lies
		k.cfg.Log.InfoContext(ctx, "what a pull request shows is not wanted", "repository", key.repository, "number", key.number, "why", refused.Error())
		err, refusal = nil, true
	}
	if err == nil {
		k.mu.Lock()
		if t.answers == answers {
			if t.reported != digest {
				t.times = 0
			}
			t.reported, t.at, t.unwanted = digest, now, refusal
			t.times++
			next = now.Add(k.pause(t, s))
		}
		k.mu.Unlock()
		k.lookAgain(key, s, next)
	}
	return err
}

// known returns the entry of a pull request: that of the step that made it, or
// a new one by its mark; nil if it has none that counts.
func (k *Keeper) known(key pullKey, body string) *tracked {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.pulls[key]
	if t != nil && !t.marked {
		return t
	}
	// A mark of another project would have this pull request told of there.
	to, a, ok := readMark(body, func(to forge.Key) bool { return k.cfg.Repositories[to.Project] == key.repository })
	if !ok || t != nil && t.to == to && t.attempt == a {
		return t
	}
	t = &tracked{to: to, attempt: a, marked: true, queue: t != nil && t.queue}
	k.pulls[key] = t
	return t
}

// digestOf returns a digest of all that a snapshot says, without when that was.
func digestOf(s *forge.PullRequest) string {
	content := *s
	content.Seen = time.Time{}
	data, err := json.Marshal(&content)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// rest waits until there is something to do.
func (k *Keeper) rest(ctx context.Context) {
	next := k.nextSweep
	for _, at := range k.due {
		if at.Before(next) {
			next = at
		}
	}
	if next.Before(k.parked) {
		next = k.parked
	}
	timer := time.NewTimer(max(next.Sub(k.cfg.Now()), time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-k.woken:
	}
}
