package main

import (
	"sync"
	"time"
)

// gate holds the call of an agent for a time, and until it is opened.
type gate struct {
	// hold is how long it is shut at least, from when it was met first.
	hold time.Duration

	mu   sync.Mutex
	met  time.Time
	open bool
}

// newGate returns a gate that is shut.
func newGate(hold time.Duration) *gate { return &gate{hold: hold} }

// release opens the gate for good. It may be called again.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
}

// shut returns how long to wait until the gate is met again, which the call has met so many times; 0 if it may go on. The more often, the
// longer, since an agent has some dozens of turns.
func (g *gate) shut(times int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.met.IsZero() {
		g.met = time.Now()
	}
	if g.open && time.Since(g.met) >= g.hold {
		return 0
	}
	return min(time.Duration(times)*2*time.Second, 15*time.Second)
}
