package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/intakes"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Config has all that a Watcher works with.
type Config struct {
	// Name is that of the forge, and of the system in whose name intents are submitted.
	Name string
	// Gateway is the account on the bus.
	Gateway string
	// Forge is asked.
	Forge forges.Forge
	// Repositories are those that are watched, as owner/name; hints to others are dropped.
	Repositories []string
	// Projects are those whose changes lead to looks: all that the rules name.
	Projects []forge.ProjectID
	// Hooks are the names of the hooks through which the forge tells.
	Hooks []string
	// Rules are the operator's.
	Rules *intake.Rules
	// API decides what people ask for in comments, and Tokens says whose an
	// account is and what they may.
	API    *api.API
	Tokens *tokens.Book
	// Submissions, Deliveries, Changes and Intakes are doors of the bus.
	Submissions *requests.Submissions
	Deliveries  *deliveries.Stream
	Changes     *changes.Stream
	Intakes     *intakes.Stream
	// Secrets are taken out of texts for the forge.
	Secrets *redact.Redactor
	// Log is told of all that a person may have to mend.
	Log *slog.Logger
	// Every is the time between sweeps, Debounce how long a hint waits for others, Seldom the least
	// time between two edits of one comment. Zero values are 5 minutes, 2 seconds and 30 seconds.
	Every, Debounce, Seldom time.Duration
}

// issueKey is an issue that is watched.
type issueKey struct {
	repository string
	number     int64
}

// Watcher watches the repositories of one forge. Run it once.
type Watcher struct {
	cfg  Config
	self intake.Account
	// names has the name of each repository that is watched, by its number, as
	// far as our account may see them by now.
	names map[int64]string
	// due says when to look at an issue, edited when its comment was written.
	due    map[issueKey]time.Time
	edited map[issueKey]time.Time
	// answers are the reactions to commands.
	answers answers
	// parked is when the forge may be asked again.
	parked time.Time
	// swept is the time up to which a sweep has seen everything of a repository,
	// by the name of the settings; nextSweep is when the next one is.
	swept     map[string]time.Time
	nextSweep time.Time
	// read is the last delivery that was read.
	read uint64
	// counter counts the intents of limits, people are those who may decide.
	counter counter
	people  people
	// delivered has the texts and edits of each issue that deliveries tell, until it was looked at.
	delivered map[issueKey]*intake.Delivered
	// ignored says why the own rules of a repository do not count, by its
	// number, as it was told to the log last.
	ignored map[int64]string
	// teams has the last answers about who is in which team.
	teams teams
	// hints has issues to look at, from changes; woken says that there are deliveries.
	hints chan hint
	woken chan struct{}
}

// hint is an issue of a repository, which is known by its number.
type hint struct {
	repository, number int64
}

const (
	// firstSweep is how far back the first sweep looks, and overlap how far
	// each looks back behind the one before: clocks differ.
	firstSweep = 30 * 24 * time.Hour
	overlap    = 2 * time.Minute
	// again is when something that failed is tried once more.
	again = time.Minute
)

// New returns a Watcher.
func New(cfg Config) *Watcher {
	for d, usual := range map[*time.Duration]time.Duration{&cfg.Every: 5 * time.Minute, &cfg.Debounce: 2 * time.Second, &cfg.Seldom: 30 * time.Second} {
		if *d == 0 {
			*d = usual
		}
	}
	return &Watcher{
		cfg: cfg, names: map[int64]string{}, due: map[issueKey]time.Time{}, edited: map[issueKey]time.Time{},
		answers: answers{forge: cfg.Forge, given: map[issueKey]int64{}},
		counter: counter{stream: cfg.Intakes, forge: cfg.Name, now: time.Now}, people: people{book: cfg.Tokens, forge: cfg.Name},
		swept: map[string]time.Time{}, delivered: map[issueKey]*intake.Delivered{}, ignored: map[int64]string{},
		teams: teams{members: map[belonging]belongs{}, unread: map[teamName]time.Time{}}, hints: make(chan hint, 100), woken: make(chan struct{}, 1),
	}
}

// Run watches until ctx ends. It returns an error only for a forge that does not let
// us in. A repository that our account may not see is tried again by each sweep.
func (w *Watcher) Run(ctx context.Context) error {
	if err := w.begin(ctx); err != nil || ctx.Err() != nil {
		return ended(ctx, err)
	}
	if err := w.cfg.Deliveries.OnDelivery(ctx, func() {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}); err != nil {
		return ended(ctx, err)
	}
	for _, p := range w.cfg.Projects {
		go w.follow(ctx, p)
	}
	for ctx.Err() == nil {
		now := time.Now()
		if !now.Before(w.parked) {
			w.sweep(ctx, now) // first, since it finds the repositories that deliveries are about
			w.deliveries(ctx)
			w.lookAround(ctx)
		}
		w.rest(ctx)
	}
	return nil
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
	for {
		err := w.introduce(ctx)
		parked, ok := errors.AsType[*forges.ParkedError](err)
		if !ok {
			return err
		}
		w.cfg.Log.WarnContext(ctx, "the forge is not there yet", "forge", w.cfg.Name, "error", err)
		if !sleep(ctx, time.Until(parked.Until)) {
			return ctx.Err()
		}
	}
}

// introduce is begin, once.
func (w *Watcher) introduce(ctx context.Context) (err error) {
	if w.self, err = w.cfg.Forge.Self(ctx); err != nil {
		return fmt.Errorf("forge %s: our account: %w", w.cfg.Name, err)
	}
	return nil
}

// deliveries makes hints of what came through the hooks since the last time. The first
// time it reads all that the stream has: what came while no watcher ran, or another
// one did, leads to looks that change nothing, and tells which texts an issue had.
func (w *Watcher) deliveries(ctx context.Context) {
	last, err := w.cfg.Deliveries.After(ctx, w.read, func(d deliveries.Delivery) error {
		if !w.ours(d.Hook) {
			return nil
		}
		h, err := w.cfg.Forge.Hint(d.Event, d.Body)
		if err != nil { // the sweep asks for the issue, whatever this was
			w.cfg.Log.WarnContext(ctx, "cannot read a delivery", "hook", d.Hook, "delivery", d.ID, "error", err)
		}
		if !h.Pull {
			w.hint(h.RepositoryID, h.Number, w.cfg.Debounce)
			w.keep(&h)
		}
		return nil
	})
	w.read = max(w.read, last)
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "cannot read what came through the hooks; the next sweep makes up for it", "forge", w.cfg.Name, "error", err)
	}
}

// keep stores the text of an issue in a delivery, and who edited it, for the
// look that the delivery leads to.
func (w *Watcher) keep(h *forges.Hint) {
	key := issueKey{w.names[h.RepositoryID], h.Number}
	if _, due := w.due[key]; !due {
		return // it leads to none
	}
	if w.delivered[key] == nil {
		w.delivered[key] = &intake.Delivered{}
	}
	w.delivered[key].Add(h.Text, h.At, intake.Account{ID: h.EditorID, Login: h.Editor})
}

// ours reports whether a hook is that of the forge.
func (w *Watcher) ours(hook string) bool {
	return slices.Contains(w.cfg.Hooks, hook)
}

// hint has an issue looked at, unless that is going to happen sooner. Several
// hints within a while lead to one look.
func (w *Watcher) hint(repository, number int64, in time.Duration) {
	name, watched := w.names[repository]
	key := issueKey{name, number}
	at := time.Now().Add(in)
	if before, known := w.due[key]; watched && number > 0 && (!known || at.Before(before)) {
		w.due[key] = at
	}
}

// sweep asks for all that changed since the last sweep, when it is time for that.
func (w *Watcher) sweep(ctx context.Context, now time.Time) {
	if now.Before(w.nextSweep) {
		return
	}
	next := now.Add(w.cfg.Every)
	// What fails at one repository says nothing of the others, unless the forge
	// wants to be left alone.
	for _, name := range w.cfg.Repositories {
		if err := w.sweepOne(ctx, name, now); err != nil {
			w.failed(ctx, err, "cannot sweep", name)
			next = now.Add(min(again, w.cfg.Every))
		}
		if ctx.Err() != nil || time.Now().Before(w.parked) {
			break
		}
	}
	w.nextSweep = next
}

// sweepOne asks for all that changed in a repository, by its name in the
// settings. One that was not there before may be by now.
func (w *Watcher) sweepOne(ctx context.Context, name string, now time.Time) error {
	r, err := w.cfg.Forge.Repository(ctx, name)
	if err != nil {
		return err
	}
	w.names[r.ID] = r.Name
	// What was seen before is looked at again, which changes nothing.
	since := now.Add(-firstSweep)
	if last := w.swept[name]; !last.IsZero() {
		since = last.Add(-overlap)
	}
	list, err := w.cfg.Forge.Changed(ctx, r.Name, since)
	if err != nil {
		return err
	}
	for _, c := range list {
		w.hint(r.ID, c.Number, 0)
	}
	w.swept[name] = now
	return nil
}

// lookAround looks at each issue that is due.
func (w *Watcher) lookAround(ctx context.Context) {
	// Those that come to be due meanwhile are looked at in the next round.
	for key, at := range w.due {
		if ctx.Err() != nil || time.Now().Before(w.parked) {
			return
		}
		if time.Now().Before(at) {
			continue
		}
		delete(w.due, key)
		err := w.look(ctx, key)
		if err != nil && ctx.Err() == nil {
			w.failed(ctx, err, "cannot look at an issue", fmt.Sprintf("%s#%d", key.repository, key.number))
			if !errors.Is(err, forges.ErrNotFound) {
				w.due[key] = time.Now().Add(again)
				continue
			}
		}
		delete(w.delivered, key)
	}
}

// failed parks the watcher if the forge says so, and tells the log.
func (w *Watcher) failed(ctx context.Context, err error, what, where string) {
	if parked, ok := errors.AsType[*forges.ParkedError](err); ok {
		w.parked = parked.Until
	}
	w.cfg.Log.WarnContext(ctx, "a look at the forge failed; there is another one later", "what", what, "where", where, "error", err)
}

// rest waits until there is something to do.
func (w *Watcher) rest(ctx context.Context) {
	next := w.nextSweep
	for _, at := range w.due {
		if at.Before(next) {
			next = at
		}
	}
	// Hints of changes are taken meanwhile, so that those who send them go on.
	if next.Before(w.parked) {
		next = w.parked
	}
	timer := time.NewTimer(max(time.Until(next), time.Millisecond))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-w.woken:
	case h := <-w.hints:
		w.hint(h.repository, h.number, w.cfg.Debounce)
	}
}

// follow makes hints of the changes of a project's intents, until ctx ends.
func (w *Watcher) follow(ctx context.Context, p forge.ProjectID) {
	for ctx.Err() == nil {
		err := w.cfg.Changes.Watch(ctx, p, changes.Now, func() {}, func(c changes.Published) error {
			var e struct {
				Data struct {
					Origin struct {
						System  string `json:"system"`
						EventID string `json:"event_id"`
					} `json:"origin"`
				} `json:"data"`
			}
			err := json.Unmarshal(c.Event, &e)
			if err != nil || e.Data.Origin.System != w.cfg.Name {
				return nil //nolint:nilerr // a change of another version, or of another system: the sweep looks all the same
			}
			if id, number, ok := parseEventID(w.cfg.Name, e.Data.Origin.EventID); ok {
				select {
				case w.hints <- hint{id, number}:
				case <-ctx.Done():
				}
			}
			return nil
		})
		if err != nil {
			w.cfg.Log.WarnContext(ctx, "cannot follow the changes of a project; the next sweep makes up for it", "project", string(p), "error", err)
			sleep(ctx, again)
		}
	}
}

// parseEventID returns the repository and the issue of an event id of ours.
func parseEventID(name, id string) (repository, number int64, ok bool) {
	id, _, _ = strings.Cut(id, "#")
	p := strings.Split(id, "/")
	if len(p) != 4 || p[0] != name || p[2] != "issue" {
		return 0, 0, false
	}
	repository, err := strconv.ParseInt(p[1], 10, 64)
	number, err2 := strconv.ParseInt(p[3], 10, 64)
	return repository, number, err == nil && err2 == nil
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
