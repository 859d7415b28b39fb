package repository

import (
	"context"
	"sync"
)

// locks is a mutex per name.
type locks struct {
	mu   sync.Mutex
	held map[string]*nameLock
}

type nameLock struct {
	slot  chan struct{}
	users int
}

// Lock waits until nobody else in this process works under the name, such as in
// the checkout of a task. An error is the cause of the end of ctx.
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
		return func() { <-n.slot; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
