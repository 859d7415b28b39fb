package main

import (
	"sync"
	"time"
)

// gate holds calls for a time, and until it is opened. A call of an agent that takes many
// minutes is one that waits here: it costs nothing but time.
type gate struct {
	// hold is how long each call waits at least.
	hold time.Duration
	// open is closed by the first release.
	open chan struct{}
	once sync.Once
}

// newGate returns a gate that is shut.
func newGate(hold time.Duration) *gate { return &gate{hold: hold, open: make(chan struct{})} }

// release opens the gate for good. It may be called again.
func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// pass returns when the call may go on.
func (g *gate) pass() {
	<-time.After(g.hold)
	<-g.open
}
