package main

import (
	"context"
	"sync"
	"time"
)

// gate holds the call of an agent for a time, and until it is opened: so a test can do something
// to the cluster while a call is under way, and knows that it was.
type gate struct {
	// hold is how long it is shut at least, from when it was met first.
	hold time.Duration

	mu sync.Mutex
	// met is when the first request of the call came; zero before.
	met  time.Time
	open bool
	// turns is how often the call has met the gate, and past is closed when it goes on.
	turns int
	past  chan struct{}
}

// newGate returns a gate that is shut.
func newGate(hold time.Duration) *gate { return &gate{hold: hold, past: make(chan struct{})} }

// release opens the gate for good. It may be called again.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// passed waits until the call goes on, for some seconds at most, and returns
// how often it has met the gate and whether it goes on.
func (g *gate) passed(ctx context.Context) (turns int, past bool) {
	select {
	case <-g.past:
		past = true
	case <-time.After(8 * time.Second):
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.turns, past
}

// shut returns how long to wait until the gate is met again, which the call has met so many times;
// 0 if it may go on. The waits grow from two seconds to fifteen, since each is a turn of the agent
// and it has some dozens of them.
func (g *gate) shut(times int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.met.IsZero() {
		g.met = time.Now()
	}
	g.turns = times
	if g.open && time.Since(g.met) >= g.hold {
		select {
		case <-g.past:
		default:
			close(g.past)
		}
		return 0
	}
	return min(time.Duration(times)*2*time.Second, 15*time.Second)
}
