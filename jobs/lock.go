package jobs

import (
	"context"
	"sync"
)

// locks is a set of mutexes by name. An entry exists while it is held or waited for.
type locks struct {
	mu   sync.Mutex
	held map[string]*nameLock
}

// nameLock is the mutex of one name.
type nameLock struct {
	// slot holds an element while the lock is held.
	slot chan struct{}
	// users counts the holder and those that wait.
	users int
}

// Lock waits until the name is free in this process, such as the checkout of a
// task, and returns the function that frees it, once however often it is
// called. The error is the cause of the end of ctx.
func (r *Repository) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l := &r.locks
	l.mu.Lock()
	if l.held == nil {
		l.held = map[string]*nameLock{}
	}
	n := l.held[name]
	if n == nil {
		n = &nameLock{slot: make(chan struct{}, 1)}
		l.held[name] = n
	}
	n.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n.users--; n.users == 0 {
			delete(l.held, name)
		}
	}
	select {
	case n.slot <- struct{}{}:
		return sync.OnceFunc(func() { <-n.slot; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
