package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

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
	checks   []check
	// metrics answers /metrics; nil: nothing does.
	metrics http.Handler
}

// check is one condition of readiness.
type check struct {
	name string
	ask  func(context.Context) error
}

// Add makes readiness depend on a check: nil means ready. ask must return when its
// context ends.
func (h *Health) Add(name string, ask func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check{name, ask})
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
	checks, draining := h.checks, h.draining
	h.mu.Unlock()
	if draining {
		return errors.New("draining")
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var missing []error
	for _, c := range checks {
		if err := c.ask(ctx); err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(missing...)
}

// ServeHTTP answers GET /livez and /readyz, with 200 or 503 and a plain reason, and
// /metrics.
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
