package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
)

// ledger says which of several gateways does a thing, and that it was done. Its entries
// are in the stream of deliveries, where the server stores each once: whoever stores the
// n-th claim of a thing may do it, until the lease ends. It is safe for concurrent use.
type ledger struct {
	// name is that of the chat, under which no hook stores anything.
	name  string
	lease time.Duration
	now   func() time.Time
	store func(context.Context, deliveries.Delivery) (known bool, err error)

	mu     sync.Mutex
	things map[string]*thing
}

// thing is one that is to be done once.
type thing struct {
	// claims is how many there are, and until when the last one holds.
	claims int
	until  time.Time
	// mine says that the last one is our own: then it can be tried again in the
	// first half of the lease.
	mine bool
	done bool
}

// The entries, by the event of their delivery.
const (
	entryClaim = "claim"
	entryDone  = "done"
	// remembered is for how long an entry is kept in memory: longer than the stream keeps it.
	remembered = 8 * 24 * time.Hour
)

// heldError says that another gateway does a thing until a time.
type heldError struct{ until time.Time }

func (e *heldError) Error() string {
	return "another gateway is at it until " + e.until.UTC().Format(time.RFC3339)
}

// take notes an entry of the stream, and reports whether the delivery is one.
func (l *ledger) take(d *deliveries.Delivery) bool {
	if d.Hook != l.name || d.Event != entryClaim && d.Event != entryDone {
		return false
	}
	what, number, _ := strings.Cut(d.ID, "#")
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(what)
	if d.Event == entryDone {
		t.done = true
		t.until = d.At
		return true
	}
	if n, err := strconv.Atoi(number); err == nil && n > t.claims {
		t.claims, t.until, t.mine = n, d.At.Add(l.holds(n)), false
	}
	return true
}

// of returns a thing.
func (l *ledger) of(what string) *thing {
	t := l.things[what]
	if t == nil {
		t = &thing{}
		l.things[what] = t
	}
	return t
}

// holds returns for how long the n-th claim holds: a lease for the first ones, so that the work of
// a gateway that was killed goes on soon, and then twice as long each time, up to 32 leases.
// Claims take room from the deliveries beside them, and what has failed so often fails for longer.
func (l *ledger) holds(n int) time.Duration { return l.lease << min(max(n-3, 0), 5) }

// forget drops the things whose entries the stream does not have any more, so
// that the memory of a gateway does not grow for ever.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, t := range l.things {
		if l.now().Sub(t.until) > remembered {
			delete(l.things, what)
		}
	}
}

// once has a thing done by one gateway at a time, until do returns no error. What
// was done is not done again. Errors: *heldError, and those of do and of the store.
func (l *ledger) once(ctx context.Context, what string, do func() error) error {
	l.mu.Lock()
	t := *l.of(what)
	l.mu.Unlock()
	now := l.now()
	switch {
	case t.done:
		return nil
	case t.mine && now.Before(t.until.Add(-l.lease/2)):
	case t.claims > 0 && now.Before(t.until):
		return &heldError{t.until}
	default:
		if err := l.claim(ctx, what, t.claims+1); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err // it is tried again, by us or by whoever comes first after the claim
	}
	if _, err := l.store(ctx, deliveries.Delivery{Hook: l.name, ID: what + "#" + entryDone, Event: entryDone}); err != nil {
		return err
	}
	l.mu.Lock()
	l.of(what).done = true
	l.mu.Unlock()
	return nil
}

// claim stores the n-th claim of a thing. Error: *heldError if another gateway has stored it.
func (l *ledger) claim(ctx context.Context, what string, n int) error {
	known, err := l.store(ctx, deliveries.Delivery{Hook: l.name, ID: fmt.Sprintf("%s#%d", what, n), Event: entryClaim})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(what)
	if n > t.claims || n == t.claims && !known {
		t.claims, t.until, t.mine = n, l.now().Add(l.holds(n)), !known
	}
	if known {
		return &heldError{t.until}
	}
	return nil
}
