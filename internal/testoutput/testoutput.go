// Package testoutput collects the output of processes and loggers in tests.
//
// An Output is given to a process as stdout or stderr, or to a logger, and read
// while they still write: bytes.Buffer is not safe for that.
package testoutput

import (
	"strings"
	"sync"
)

// Output collects the text of several writers, and may be read meanwhile. The zero value is ready.
// It is safe for concurrent use.
type Output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends p, and never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
