// Package announced makes a replica known to those who ask which services run,
// and has them know while it is not well.
package announced

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

const (
	// lookEvery is how often it is looked whether others are to be told of this
	// replica's health. A look costs a write of a few KiB every ten seconds.
	lookEvery = 2 * time.Second
	// lookTime bounds one look: a disk that does not answer is one that cannot be used.
	lookTime = 2 * time.Second
)

// Announcer announces one replica. The zero value announces nothing. It is safe
// for concurrent use, but for Announce and Leave.
type Announcer struct {
	services *presence.Services
	log      *slog.Logger
	// unwatch ends the watch over the replica's health; nil before the first announcement.
	unwatch func()

	mu sync.Mutex
	// checks return why the replica is not well; nil if it is.
	checks []func(context.Context) error
	// replica is announced at present, until withdraw is called; both nil
	// before the first announcement.
	replica  *presence.Replica
	withdraw func()
}

// AddCheck adds a check, whose error others are told for as long as there is
// one. It is called every few seconds, so it must cost little, and its error
// must not name anything that not all may know.
func (a *Announcer) AddCheck(check func(context.Context) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks = append(a.checks, check)
}

// Announce makes a replica known until ctx ends, or it is called again for the same
// one, with why it is not well while it is not. What goes wrong is only logged.
func (a *Announcer) Announce(ctx context.Context, services *presence.Services, log *slog.Logger, r *presence.Replica) {
	a.mu.Lock()
	first := a.replica == nil
	a.services, a.log, a.replica = services, log, r
	a.announce(ctx)
	a.mu.Unlock()
	if !first {
		return
	}
	watching, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); a.watch(watching) }()
	a.unwatch = func() { stop(); <-ended }
}

// Leave withdraws the announcement: others do not see this replica any more.
func (a *Announcer) Leave() {
	if a.unwatch == nil {
		return
	}
	a.unwatch()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.withdraw()
}

// announce makes the replica known, in place of what was announced before. The
// caller holds the lock.
func (a *Announcer) announce(ctx context.Context) {
	stop, err := a.services.Announce(ctx, *a.replica)
	if err != nil && ctx.Err() == nil {
		a.log.ErrorContext(ctx, "others may not see that this service runs", "error", err)
	}
	if a.withdraw != nil {
		a.withdraw() // only now, so that it is always there
	}
	done := context.AfterFunc(ctx, stop)
	a.withdraw = func() {
		if done() {
			stop()
		}
	}
}

// watch announces the replica anew, until ctx ends, when it becomes unable to
// do its work, and when it can again.
func (a *Announcer) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		if why := a.look(ctx); why != a.replica.Unwell && ctx.Err() == nil {
			now := *a.replica
			if now.Unwell == "" {
				now.Since = time.Now()
			}
			if now.Unwell = why; why == "" {
				now.Since = time.Time{}
			}
			a.replica = &now
			a.announce(ctx)
		}
		a.mu.Unlock()
	}
}

// look returns why the replica is not well; empty if it is. The caller holds the lock.
func (a *Announcer) look(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var list []string
	for _, check := range a.checks {
		if err := check(ctx); err != nil {
			list = append(list, term.Line(err.Error()))
		}
	}
	return strings.Join(list, "; ")
}
