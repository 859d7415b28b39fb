package main

import (
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
}

// newGate returns a gate that is shut.
func newGate(hold time.Duration) *gate { return &gate{hold: hold} }

// release opens the gate for good. It may be called again.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
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
	if g.open && time.Since(g.met) >= g.hold {
		return 0
	}
	return min(time.Duration(times)*2*time.Second, 15*time.Second)
}
