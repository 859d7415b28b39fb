// Package together has several who ask for the same at about the same time
// share one answer. It is pure but for its goroutines.
//
// An answer is never older than the question: who asks while an answer is being
// made gets the next one, which begins when that is ready, together with all who
// asked meanwhile; who asks before one has begun shares that. So a thousand who
// ask at once cost two answers, and no answer is of a time before its question.
package together

import (
	"context"
	"sync"
)

// Group has the answers that are being made, by keys. The zero value has none.
// It is safe for concurrent use.
type Group[T any] struct {
	// Gather, if not nil, waits before an answer begins, for more who ask: a
	// change is told to all who look within some milliseconds.
	Gather func()
	// Alone, if not nil, reports whether an error is of the one alone whose f was
	// called, such as that they may not see something: the others ask again. Any
	// other error is everybody's: what is slow or away is not asked by each of them.
	Alone func(error) bool

	mu    sync.Mutex
	under map[string]*answer[T]
}

// answer is one that is being made, or the one after it.
type answer[T any] struct {
	ready chan struct{} // closed when it is there
	value T
	err   error
	make  func() (T, error)
	// begun says that it is being made, so that who asks now gets next, which
	// is nil if no one has asked since.
	begun bool
	next  *answer[T]
}

// Do returns the value of f, or of the f of another one with the same key. It is called
// after Do was; not by whoever asks, so that it goes on when they leave: f bounds itself.
// The error is that of ctx, of f, or of another f if it is not of that one alone.
func (g *Group[T]) Do(ctx context.Context, key string, f func() (T, error)) (value T, err error) {
	for { // each time, one more has been told their own error
		value, own, err := g.once(ctx, key, f)
		if err == nil || own || g.Alone == nil || !g.Alone(err) {
			return value, err
		}
	}
}

// once asks once, and returns as well whether it was f that was called.
func (g *Group[T]) once(ctx context.Context, key string, f func() (T, error)) (value T, own bool, err error) {
	g.mu.Lock()
	a := &answer[T]{ready: make(chan struct{}), make: f}
	switch under := g.under[key]; {
	case under == nil:
		if g.under == nil {
			g.under = map[string]*answer[T]{}
		}
		g.under[key], own = a, true
		go g.run(key, a)
	case !under.begun:
		a = under
	case under.next == nil:
		under.next, own = a, true
	default:
		a = under.next
	}
	g.mu.Unlock()
	select {
	case <-a.ready:
		return a.value, own, a.err
	case <-ctx.Done():
		return value, own, ctx.Err()
	}
}

// run makes an answer, and those that were asked for meanwhile.
func (g *Group[T]) run(key string, a *answer[T]) {
	for a != nil {
		if g.Gather != nil {
			g.Gather()
		}
		g.mu.Lock()
		a.begun = true
		g.mu.Unlock()
		a.value, a.err = a.make()
		close(a.ready)
		g.mu.Lock()
		if a = a.next; a == nil {
			delete(g.under, key)
		} else {
			g.under[key] = a
		}
		g.mu.Unlock()
	}
}
