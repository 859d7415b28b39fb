package events

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Deliveries is the stream of the deliveries to hooks, a *deliveries.Stream.
type Deliveries interface {
	// After calls take with all deliveries after a place in the stream, and returns the last place.
	After(ctx context.Context, seq uint64, take func(deliveries.Delivery) error) (last uint64, err error)
	// OnDelivery calls do when a delivery may have been stored.
	OnDelivery(ctx context.Context, do func()) error
	// Store stores a delivery once.
	Store(ctx context.Context, d deliveries.Delivery) (known bool, err error)
	// Bury puts a delivery among the dead letters.
	Bury(ctx context.Context, d deliveries.Delivery, subject, reason string) error
}

// Config has all that a Reader works with.
type Config struct {
	// Hooks are those that have an entry.
	Hooks []hooks.Hook
	// Deliveries are read, and marks are stored beside them.
	Deliveries Deliveries
	// API takes each submission, and Tokens has the entries as which hooks act.
	API    *api.API
	Tokens *tokens.Book
	// Gateway is the account on the bus.
	Gateway string
	// Log is told of all that a person may have to mend.
	Log *slog.Logger
	// Again is the first pause before what failed is tried once more, and
	// Within is for how long it is. Zero values are a second and three days.
	Again, Within time.Duration
	// Held bounds the bodies that wait in memory, in bytes; 0 is 16 MiB. Others
	// are read from the stream again when their turn comes.
	Held int
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
}

const (
	// seldom is how often the stream is looked at without anything having been heard, and
	// how long a pause is at most. After something was heard, which is stored a moment
	// later, the stream is looked at settles times more, the first time after settle.
	seldom  = 15 * time.Second
	longest = time.Minute
	settle  = 20 * time.Millisecond
	settles = 7
	// atOnce bounds those that are handed on at the same time, and aRound those
	// before the stream is looked at again.
	atOnce = 8
	aRound = 64
	// perPending is about what a delivery takes besides its body, in bytes.
	perPending = 300
	// maxName bounds the name of an event where it is shown or journaled, in characters.
	maxName = 100
)

// Reader hands on what systems ask for through hooks. Run it once at a time.
type Reader struct {
	cfg Config
	// seq is the last delivery that was read, and open has those that have no
	// mark, by it. held counts the bytes of those whose bodies are here.
	seq  uint64
	open map[string]*pending
	held int
}

// pending is a delivery that is to be submitted.
type pending struct {
	deliveries.Delivery

	// left says that its body is in the stream alone.
	left bool
	due  time.Time
	// tries is how often it was tried.
	tries int
}

// size returns about how many bytes it takes here.
func (p *pending) size() int { return len(p.Body) + perPending }

// New returns a Reader.
func New(cfg Config) *Reader {
	cfg.Again, cfg.Within, cfg.Held = cmp.Or(cfg.Again, time.Second), cmp.Or(cfg.Within, 72*time.Hour), cmp.Or(cfg.Held, 16<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Reader{cfg: cfg, open: map[string]*pending{}}
}

// Run reads until ctx ends. It returns an error only if it cannot hear of deliveries.
func (r *Reader) Run(ctx context.Context) error {
	heard := make(chan struct{}, 1)
	if err := r.cfg.Deliveries.OnDelivery(ctx, func() {
		select {
		case heard <- struct{}{}:
		default:
		}
	}); err != nil {
		return err
	}
	looks := settles // deliveries that come while this begins are heard by no one
	for ctx.Err() == nil {
		next := r.cfg.Now().Add(seldom)
		if looks > 0 {
			next = r.cfg.Now().Add(settle << (settles - looks))
			looks--
		}
		// The marks in the stream are known before anything is done.
		if r.read(ctx) {
			next = earlier(next, r.round(ctx))
		}
		timer := time.NewTimer(max(next.Sub(r.cfg.Now()), time.Millisecond))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-heard:
			looks = settles
		}
		timer.Stop()
	}
	return nil
}

// earlier returns the earlier one of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// hook returns the hook of a name; nil for one that has no entry.
func (r *Reader) hook(name string) *hooks.Hook {
	i := slices.IndexFunc(r.cfg.Hooks, func(h hooks.Hook) bool { return h.Name == name })
	if i < 0 {
		return nil
	}
	return &r.cfg.Hooks[i]
}

// markOf returns the mark of a delivery.
func markOf(d *deliveries.Delivery) string {
	sum := sha256.Sum256([]byte(d.Hook + "\n" + d.ID))
	return hex.EncodeToString(sum[:16])
}

// read notes the deliveries and marks since the last time, and reports whether
// it has seen all of them.
func (r *Reader) read(ctx context.Context) bool {
	last, err := r.cfg.Deliveries.After(ctx, r.seq, func(d deliveries.Delivery) error {
		switch {
		case d.Hook == hooks.Submitted:
			r.drop(d.ID)
		case r.hook(d.Hook) != nil:
			r.add(&d)
		}
		return nil
	})
	r.seq = max(r.seq, last)
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "cannot read what systems sent to hooks; it is tried again", "error", err)
	}
	return err == nil
}

// add notes a delivery that has no mark. Where others have the room, its body
// is left in the stream.
func (r *Reader) add(d *deliveries.Delivery) {
	mark, p := markOf(d), &pending{Delivery: *d}
	r.drop(mark)
	if r.held+p.size() > r.cfg.Held {
		p.Body, p.left = nil, true
	} else {
		r.held += p.size()
	}
	r.open[mark] = p
}

// drop forgets a delivery.
func (r *Reader) drop(mark string) {
	if p := r.open[mark]; p != nil && !p.left {
		r.held -= p.size()
	}
	delete(r.open, mark)
}

// errEnough ends a read of the stream.
var errEnough = errors.New("one is enough")

// whole returns a delivery with its body. A *fieldError says that the stream has it no more.
func (r *Reader) whole(ctx context.Context, p *pending) (*deliveries.Delivery, error) {
	d := p.Delivery
	if !p.left {
		return &d, nil
	}
	there := false
	_, err := r.cfg.Deliveries.After(ctx, d.Seq-1, func(stored deliveries.Delivery) error {
		if there = stored.Seq == d.Seq; there {
			d.Body = stored.Body
		}
		return errEnough
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case !there:
		return &d, &fieldError{"", "was pushed out of the stream of deliveries by others before it could be submitted"}
	}
	return &d, nil
}

// round hands on the oldest ones that are due, and returns when the next one is.
func (r *Reader) round(ctx context.Context) time.Time {
	now := r.cfg.Now()
	var due []string
	for mark, p := range r.open {
		if !now.Before(p.due) {
			due = append(due, mark)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Compare(r.open[a].Seq, r.open[b].Seq) })
	due = due[:min(len(due), aRound)]
	errs := make([]error, len(due))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, mark := range due {
		group.Go(func() error {
			errs[i] = r.decide(ctx, mark, r.open[mark])
			return nil
		})
	}
	_ = group.Wait()
	for i, mark := range due {
		if errs[i] == nil {
			r.drop(mark)
			continue
		}
		p := r.open[mark]
		p.due = r.cfg.Now().Add(min(r.cfg.Again<<min(p.tries, 16), longest))
		if p.tries++; p.tries == 1 && ctx.Err() == nil {
			r.cfg.Log.WarnContext(ctx, "what a system sent to a hook is not submitted yet; it is tried again", "hook", p.Hook,
				"event", term.Short(p.ID, maxName), "error", errs[i])
		}
	}
	next := now.Add(seldom)
	for p := range maps.Values(r.open) {
		next = earlier(next, p.due)
	}
	return next
}

// decide submits a delivery, or refuses it, and stores its mark. An error has it tried again.
func (r *Reader) decide(ctx context.Context, mark string, p *pending) error {
	err := r.submit(ctx, p)
	if _, told := errors.AsType[*fieldError](err); err == nil || told {
		_, err = r.cfg.Deliveries.Store(ctx, deliveries.Delivery{Hook: hooks.Submitted, ID: mark})
	}
	return err
}

// submit hands a delivery on. A *fieldError says that it is refused for good.
func (r *Reader) submit(ctx context.Context, p *pending) error {
	h := r.hook(p.Hook)
	name := term.Short(p.ID, maxName)
	find := func() (*tokens.Token, error) { return r.entry(h) }
	t, err := find()
	if err != nil {
		return r.refuse(ctx, &p.Delivery, nil, "", &fieldError{"entry " + h.Entry, err.Error()})
	}
	d, err := r.whole(ctx, p)
	if _, gone := errors.AsType[*fieldError](err); gone {
		return r.refuse(ctx, d, t, "", err)
	}
	if err != nil {
		return err
	}
	event, err := eventOf(h.Kind, t.System, d)
	if err != nil {
		return r.refuse(ctx, d, t, "", err)
	}
	project, err := projectOf(event, t)
	if err != nil {
		return r.refuse(ctx, d, t, "", err)
	}
	var done requests.Accepted
	err = r.cfg.API.ForHook(find, "hook "+h.Name, "event "+name).Ask(ctx, api.Call{
		Method: http.MethodPost, Path: fmt.Sprintf("/api/v1/projects/%s/intents", project), Content: event,
	}, &done)
	if err == nil {
		r.cfg.Log.InfoContext(ctx, "submitted what a system sent to a hook", "hook", h.Name, "event", name, "project", string(project),
			"intent", string(done.Intent), "result", done.Result)
		return nil
	}
	problem, refused := errors.AsType[*api.Problem](err)
	refused = refused && problem.IsFinal()
	if late := r.cfg.Now().Sub(d.At) > r.cfg.Within; !refused && !late {
		return err
	}
	if !refused {
		return r.refuse(ctx, d, t, project, &fieldError{"", fmt.Sprintf("could not be submitted within %s: %v", r.cfg.Within, err)})
	}
	var why []string
	for _, e := range problem.Errors {
		why = append(why, (&fieldError{e.Field, e.Reason}).Error())
	}
	return r.refuse(ctx, d, t, project, &fieldError{"", cmp.Or(strings.Join(why, "; "), problem.Detail)})
}

// entry returns the entry of a hook as the file of tokens has it now.
func (r *Reader) entry(h *hooks.Hook) (*tokens.Token, error) {
	t, err := r.cfg.Tokens.Named(h.Entry)
	switch {
	case errors.Is(err, tokens.ErrExpired):
		return nil, errors.New("has expired")
	case err != nil:
		return nil, errors.New("is not in the file of tokens")
	case t.System == "":
		return nil, errors.New("is that of a person, and what comes by a hook is a system's")
	}
	return t, nil
}

// refuse puts a delivery among the dead letters of the project that it is for,
// or else of the first one of the entry, and returns why. The log is told of it
// there. The error is another one if that failed.
func (r *Reader) refuse(ctx context.Context, d *deliveries.Delivery, t *tokens.Token, project forge.ProjectID, why error) error {
	reason := fmt.Sprintf("hook %s, event %s: %v", d.Hook, term.Short(d.ID, maxName), why)
	subject := ""
	if t != nil {
		if named := t.Named(); project == "" && len(named) > 0 {
			project = named[0]
		}
		if to, err := subjects.SubmissionVia(project, t.System, r.cfg.Gateway); err == nil {
			subject = to
		}
	}
	if err := r.cfg.Deliveries.Bury(ctx, *d, subject, reason); err != nil {
		return err
	}
	if e, ok := errors.AsType[*fieldError](why); ok {
		return e
	}
	return &fieldError{"", why.Error()}
}
