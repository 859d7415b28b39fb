// Package retry paces what is tried until it succeeds: how long to wait before the next try
// ([Pace]), and which of the tries are worth a line in the log ([Notices]).
//
// The bus, the git store, workers and the CLI use it where something outside may be
// away: NATS, an origin, a gateway. Pauses double up to a maximum and are shortened
// at random, so that those who wait for the same do not return at the same moment.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pace has the pauses between tries: each is twice as long as the one before, up to Most, and
// a random part of it, at most the half, is left out, so that many that wait do not try at the
// same time. Both fields are required. It is not safe for concurrent use.
type Pace struct {
	First, Most time.Duration

	next time.Duration // 0 before the first
}

// Sleep returns after the next pause, or with the error of ctx when that ends before.
func (p *Pace) Sleep(ctx context.Context) error {
	t := time.NewTimer(p.Pause())
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Pause returns the next pause.
func (p *Pace) Pause() time.Duration {
	d := max(p.next, p.First)
	p.next = min(2*d, p.Most)
	return d - rand.N(d/2+1)
}

const (
	// firstInterval is the time between the first line about a cause and the second.
	firstInterval = 10 * time.Second
	// longestInterval bounds the time between two lines.
	longestInterval = 5 * time.Minute
)

// Notices says which failures of something that is tried again and again are logged: the
// first, and then one in 10 seconds, 20 seconds and so on, up to 5 minutes. The zero value
// is ready. It is not safe for concurrent use.
type Notices struct {
	due      time.Time // zero before the first
	interval time.Duration
}

// Due reports whether a failure at a time is logged.
func (n *Notices) Due(now time.Time) bool {
	if n.due.IsZero() {
		n.interval = firstInterval
	} else {
		if now.Before(n.due) {
			return false
		}
		n.interval = min(2*n.interval, longestInterval)
	}
	n.due = now.Add(n.interval)
	return true
}

// Any reports whether a failure was logged since the last Reset.
func (n *Notices) Any() bool { return !n.due.IsZero() }

// Reset begins anew, after a success: the next failure is logged.
func (n *Notices) Reset() { *n = Notices{} }
