package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/alive"
)

// checkTimeout bounds all readiness checks together, and the shutdown of the
// endpoint.
const checkTimeout = 2 * time.Second

// Health answers whether a service lives and whether it is ready. The zero value is
// ready. It is safe for concurrent use.
type Health struct {
	// Alive watches the loops of the service. It lives as long as none of them stands still.
	Alive alive.Watch

	mu       sync.Mutex
	draining bool
	checks   []*check
	// facts reads why work waits that no service is to blame for; nil: this service does not know.
	facts func(context.Context) ([]Fact, error)
	// metrics answers /metrics; nil: nothing does.
	metrics http.Handler
}

// check is one condition of readiness.
type check struct {
	name string
	ask  func(context.Context) error

	mu sync.Mutex
	// since is when it was first seen to fail; zero while it does not.
	since time.Time
}

// Missing is a condition of readiness that does not hold.
type Missing struct {
	Check string    `json:"check"` // as metrics name it
	Why   string    `json:"why"`   // for a person
	Since time.Time `json:"since"` // when this process first saw it fail
}

// Fact keeps work of a project waiting, and is the fault of no intent and of no service.
type Fact struct {
	Project forge.ProjectID     `json:"project"`
	Fact    forge.FailureReason `json:"fact"`
	// Of is the account that refuses calls, or what of git it is about.
	Of string `json:"of"`
	// Why has the words of the origin or the account.
	Why string `json:"why"`
	// Since is when the project heard of it first.
	Since time.Time `json:"since"`
	// Until is when it ends by itself; nil: it may take any time.
	Until *time.Time `json:"until,omitempty"`
}

// state is the answer to /readyz?verbose. Operators' scripts read it: fields
// are added, and keep their meaning.
type state struct {
	Ready    bool      `json:"ready"`
	Draining bool      `json:"draining"` // it ends, and takes nothing new
	Missing  []Missing `json:"missing"`  // never null, as Facts
	Facts    []Fact    `json:"facts"`
	// Unknown says why there are no facts although there may be some.
	Unknown string `json:"facts_unknown,omitempty"`
}

// Add makes readiness depend on a check: nil means ready. ask must return when its
// context ends.
func (h *Health) Add(name string, ask func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, &check{name: name, ask: ask})
}

// Know has /readyz?verbose tell facts as well, on which readiness does not depend: a service
// that others wait for is not sick, and taking it out of service would mend nothing.
func (h *Health) Know(facts func(context.Context) ([]Fact, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts = facts
}

// ServeMetrics has /metrics answered by a handler.
func (h *Health) ServeMetrics(handler http.Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metrics = handler
}

// Drain makes the service unready for good, so that a load balancer sends nothing
// more.
func (h *Health) Drain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.draining = true
}

// Ready returns nil, or one line for everything that is missing.
func (h *Health) Ready(ctx context.Context) error {
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if draining {
		return errors.New("draining")
	}
	var missing []error
	for _, m := range h.Missing(ctx) {
		missing = append(missing, fmt.Errorf("%s: %s", m.Check, m.Why))
	}
	return errors.Join(missing...)
}

// Missing asks each check, and returns those that fail, since when and why. Since is the time
// of the first question that was answered badly: a check that is seldom asked has failed for
// longer than it says. A service that drains misses nothing, it only takes nothing new.
func (h *Health) Missing(ctx context.Context) []Missing {
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	missing := []Missing{}
	for _, c := range checks {
		if err := c.ask(ctx); err != nil {
			missing = append(missing, Missing{c.name, err.Error(), c.failed(time.Now().UTC())})
		} else {
			c.failed(time.Time{})
		}
	}
	return missing
}

// failed keeps since when a check fails, and returns that; with the zero time, it does not.
func (c *check) failed(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.IsZero() || c.since.IsZero() {
		c.since = now
	}
	return c.since
}

// serveState answers with everything that is missing, and with the facts. The code
// follows from readiness alone: a probe may ask this way as well. Facts that cannot
// be read are said to be unknown, since an empty list would look like good news.
func (h *Health) serveState(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	draining, facts := h.draining, h.facts
	h.mu.Unlock()
	s := state{Draining: draining, Missing: h.Missing(r.Context()), Facts: []Fact{}}
	s.Ready = !draining && len(s.Missing) == 0
	if facts != nil {
		ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
		defer cancel()
		found, err := facts(ctx)
		if s.Facts = append(s.Facts, found...); err != nil {
			s.Unknown = err.Error()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if !s.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if err := json.NewEncoder(w).Encode(s); err != nil {
		return // who has asked is gone
	}
}

// ServeHTTP answers GET /livez and /readyz, with 200 or 503 and a plain reason,
// /readyz?verbose with the same codes and everything that is known as JSON, and /metrics.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "only GET is answered", http.StatusMethodNotAllowed)
		return
	}
	h.mu.Lock()
	metrics := h.metrics
	h.mu.Unlock()
	if r.URL.Path == "/metrics" && metrics != nil {
		metrics.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch r.URL.Path {
	case "/livez":
		if err := h.Alive.Stuck(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	case "/readyz":
		if r.URL.Query().Has("verbose") {
			h.serveState(w, r)
			return
		}
		if err := h.Ready(r.Context()); err != nil {
			http.Error(w, strings.TrimSpace(err.Error()), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	default:
		http.NotFound(w, r)
	}
}

// serve listens at addr until stop is called, which waits for open requests.
func (h *Health) serve(ctx context.Context, addr string, log *slog.Logger) (at net.Addr, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("--listen (FORGE_LISTEN): %w", err)
	}
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.ErrorContext(ctx, "the health endpoint stopped", "error", err)
		}
	}()
	log.InfoContext(ctx, "health endpoint", "addr", l.Addr().String())
	return l.Addr(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close()
		}
		<-done
	}, nil
}
