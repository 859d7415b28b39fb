package hooks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
)

// MaxBody bounds the body of a delivery, in bytes. Those about issues and
// comments have less than 200 KiB.
const MaxBody = 1 << 20

// Config is for a Door.
type Config struct {
	// Hooks are those that are served.
	Hooks []Hook
	// Store makes a delivery durable.
	Store func(context.Context, deliveries.Delivery) (known bool, err error)
	// Log is told of what goes wrong.
	Log *slog.Logger
	// Now is the clock; nil for that of the machine.
	Now func() time.Time
	// ReadWithin bounds the reading of a body, and StoreWithin the storing; 0
	// for 5 seconds. Forges give up after 5 or 10.
	ReadWithin, StoreWithin time.Duration
}

// Door serves the hooks: POST /hooks/{name}. It is safe for concurrent use.
type Door struct {
	cfg   Config
	hooks map[string]*served
	// room bounds the requests that are read at once, and with that the memory.
	room chan struct{}
}

// served is a hook with its bound.
type served struct {
	Hook

	rate bucket
}

const (
	// maxAtOnce bounds the requests that are read at once.
	maxAtOnce = 256
	// usually is the time that reading and storing may take.
	usually = 5 * time.Second
)

// NewDoor returns a Door for the hooks.
func NewDoor(cfg Config) *Door {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.ReadWithin == 0 {
		cfg.ReadWithin = usually
	}
	if cfg.StoreWithin == 0 {
		cfg.StoreWithin = usually
	}
	d := &Door{cfg: cfg, hooks: map[string]*served{}, room: make(chan struct{}, maxAtOnce)}
	for _, h := range cfg.Hooks {
		d.hooks[h.Name] = &served{Hook: h, rate: bucket{perMinute: h.PerMinute}}
	}
	return d
}

// Mount adds the door to a mux.
func (d *Door) Mount(mux *http.ServeMux) {
	mux.Handle("POST /hooks/{name}", d)
}

// ServeHTTP answers one delivery: 202 when it is stored (Slack: 200), 204 when such events lead
// to nothing, 401 when its signature does not fit, and 503 only when it could not be stored.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := d.hooks[r.PathValue("name")]
	if h == nil {
		http.Error(w, "there is no such hook", http.StatusNotFound)
		return
	}
	select {
	case d.room <- struct{}{}:
		defer func() { <-d.room }()
	default:
		tooMany(w, time.Second)
		return
	}
	body, ok := d.read(w, r)
	if !ok {
		return
	}
	secrets, err := h.secrets()
	if err != nil {
		d.cfg.Log.ErrorContext(r.Context(), "a hook has no secret; its deliveries are refused", "hook", h.Name, "error", err)
		http.Error(w, "this hook cannot take anything now", http.StatusServiceUnavailable)
		return
	}
	now := d.cfg.Now()
	what, err := h.Kind.verify(r.Header, body, secrets, now)
	switch {
	case errors.Is(err, errForged):
		d.cfg.Log.WarnContext(r.Context(), "refused a delivery whose signature does not fit", "hook", h.Name)
		http.Error(w, errForged.Error(), http.StatusUnauthorized)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case what.reply != nil:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(what.reply)
	case !what.wanted:
		w.WriteHeader(http.StatusNoContent)
	default:
		d.store(w, r, h, &deliveries.Delivery{Hook: h.Name, ID: what.id, Event: what.event, ContentType: r.Header.Get("Content-Type"), Body: body})
	}
}

// read returns the body, or answers: a sender has only so much time and room.
func (d *Door) read(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if r.ContentLength > MaxBody {
		tooLarge(w)
		return nil, false
	}
	// A recorder of tests has no connection, and so no deadline.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(d.cfg.ReadWithin))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		tooLarge(w)
		return nil, false
	}
	if err != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, "the body did not come in time", http.StatusRequestTimeout)
		return nil, false
	}
	_ = conn.SetReadDeadline(time.Time{}) // else storing it could look as if the sender had gone
	return body, true
}

// store makes the delivery durable, and answers.
func (d *Door) store(w http.ResponseWriter, r *http.Request, h *served, what *deliveries.Delivery) {
	if wait := h.rate.take(d.cfg.Now()); wait > 0 {
		tooMany(w, wait)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.cfg.StoreWithin)
	defer cancel()
	_, err := d.cfg.Store(ctx, *what)
	if _, large := errors.AsType[*bus.TooLargeError](err); large {
		tooLarge(w)
		return
	}
	switch {
	case errors.Is(err, deliveries.ErrForm):
		http.Error(w, "the id, the event or the content type of the delivery is no short text of printable ASCII", http.StatusBadRequest)
	case err != nil:
		d.cfg.Log.WarnContext(ctx, "could not store a delivery; the next sweep finds what it was about", "hook", h.Name, "error", err)
		http.Error(w, "it could not be stored", http.StatusServiceUnavailable)
	case h.Kind == Slack: // which shows people an error for any other number, and closes a dialog for an empty answer
		w.WriteHeader(http.StatusOK)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// tooLarge answers a body that is larger than any that is wanted, and does not read the rest of it.
func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	http.Error(w, "the body has more than "+strconv.Itoa(MaxBody)+" bytes", http.StatusRequestEntityTooLarge)
}

// tooMany answers a sender who is to come again later.
func tooMany(w http.ResponseWriter, after time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)+1))
	http.Error(w, "too many deliveries at once", http.StatusTooManyRequests)
}
