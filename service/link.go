package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

// credentialsPatience is how long a service that starts tries credentials again that are
// refused: a server that starts at the same time, or is being given new ones, may not know
// them yet.
const credentialsPatience = 30 * time.Second

// link is the connection to NATS as readiness and log tell of it, from the first try on.
type link struct {
	env *Env

	mu sync.Mutex
	// bus is nil until everything is there.
	bus *bus.Bus
	// cause is why it is not; nil before the first try has failed.
	cause   error
	notices retry.Notices
	// refused says that refused credentials have been logged.
	refused bool
}

// check is the condition of readiness.
func (l *link) check(ctx context.Context) error {
	l.mu.Lock()
	b, cause := l.bus, l.cause
	l.mu.Unlock()
	switch {
	case b != nil:
		return b.Ping(ctx)
	case cause != nil:
		return fmt.Errorf("not connected yet: %s", strings.ReplaceAll(cause.Error(), "\n", ": "))
	}
	return errors.New("not connected yet")
}

// report takes the cause for which a try failed. It logs the first, refused credentials
// when they are met first, and else one now and then.
func (l *link) report(cause error) {
	cause = l.env.named(cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	due := l.notices.Due(time.Now())
	if errors.Is(cause, bus.ErrCredentials) && !l.refused {
		l.refused, due = true, true
	}
	if due {
		l.env.Log.Warn("NATS is not there yet; waiting", "server", hidePasswords(l.env.Config.Server), "error", cause)
	}
}

// connected ends the waiting.
func (l *link) connected(b *bus.Bus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bus = b
	if l.notices.Any() {
		l.env.Log.Info("NATS is there", "server", hidePasswords(l.env.Config.Server))
	}
}
