// Package turns has decisions about one intent go one after the other, in one gateway.
//
// Each decision is compared with the intent as it is, and then handed on. Between the two
// another one could be decided, of which its person knows nothing. For an approval the
// rules compare the hash. An edit replaces the text, and with it the words of whoever
// edited it at the same moment: so the second one waits, and is then told of the first.
package turns

import (
	"context"
	"errors"
	"sync"

	forge "github.com/pfl-forge/pfl-forge"
)

// ErrBusy says that the turn of an intent did not come in time.
var ErrBusy = errors.New("another decision about it is under way")

// Turns has the turns of all intents. It is safe for concurrent use.
type Turns struct {
	mu   sync.Mutex
	each map[forge.Key]*turn
}

// turn is that of an intent, and counts those who have it or wait for it.
type turn struct {
	// free has room for the one who has the turn.
	free  chan struct{}
	users int
}

// New returns Turns.
func New() *Turns { return &Turns{each: map[forge.Key]*turn{}} }

// Take waits for the turn of an intent, until the context ends. The function that
// it returns gives the turn to the next, and is called once. Error: ErrBusy.
func (t *Turns) Take(ctx context.Context, key forge.Key) (release func(), err error) {
	t.mu.Lock()
	one := t.each[key]
	if one == nil {
		one = &turn{free: make(chan struct{}, 1)}
		t.each[key] = one
	}
	one.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(t.each, key)
		}
	}
	select {
	case one.free <- struct{}{}:
		return func() { <-one.free; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ErrBusy
	}
}
