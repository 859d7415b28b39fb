package checkout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// Park gives the checkout back and leaves it as it is. Reopen and Recover return it
// until the pool needs its tree for another checkout; after that they return
// ErrMissing. Everything that is needed later must have been collected before. The checkout must
// not be used any more, and no process may be left in it. It stays parked for the next
// Pool.
func (c *Checkout) Park() error {
	p := c.pool
	c.parked = true
	if err := errors.Join(unmountAll(c.Dir()), c.save()); err != nil {
		return err
	}
	p.mu.Lock()
	p.serial++
	p.parked[string(c.name)] = p.serial
	p.givenBack()
	p.mu.Unlock()
	return p.trim()
}

// trees returns how many checkouts there are on the disk. Those that are about to take one that
// is there already are not counted. The caller holds the lock.
func (p *Pool) trees() int { return len(p.parked) + len(p.warm) - len(p.coming) }

// givenBack tells those who wait that a checkout is not in use any more. The caller holds the lock.
func (p *Pool) givenBack() {
	close(p.freed)
	p.freed = make(chan struct{})
}

// enter counts the name of a checkout as in use, so that the tree of no other one is taken for
// more than the pool may have. One of ViewInTurn waits while as many are in use as the pool
// keeps, and as many of ViewInTurn as half of that: to write a whole tree takes longer than most
// wait, and whoever has one of these waits for nothing. Errors: that of ctx.
func (p *Pool) enter(ctx context.Context, c *Checkout) error {
	for {
		p.mu.Lock()
		if !c.inTurn || p.turns < max(p.max/2, 1) || p.inUse() < p.max {
			break
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer p.mu.Unlock()
	if c.inTurn {
		p.turns++
	}
	if !disk.IsDir(c.Dir()) {
		p.coming[string(c.name)] = true
	}
	p.parked[string(c.name)] = 0
	return nil
}

// leave tells those who wait in enter of a checkout that was given back or could not be made.
func (p *Pool) leave(c *Checkout) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.inTurn {
		p.turns--
	}
	p.givenBack()
}

// inUse returns how many checkouts are in use. The caller holds the lock.
func (p *Pool) inUse() (n int) {
	for _, turn := range p.parked {
		if turn == 0 {
			n++
		}
	}
	return n
}

// trim throws away checkouts that are not in use, until there are no more than the pool may keep.
func (p *Pool) trim() error {
	for {
		p.mu.Lock()
		victim := ""
		if p.trees() > p.max {
			if len(p.warm) > 0 {
				victim = warmPrefix + p.warm[0]
				p.warm = p.warm[1:]
			} else {
				victim = p.oldest()
				delete(p.parked, victim)
			}
		}
		p.mu.Unlock()
		if victim == "" {
			return nil
		}
		if err := p.discard(victim); err != nil {
			return err
		}
	}
}

// oldest returns the checkout that was parked longest ago, or "". The caller holds the lock.
func (p *Pool) oldest() string {
	found := ""
	for name, turn := range p.parked {
		if turn > 0 && (found == "" || turn < p.parked[found]) {
			found = name
		}
	}
	return found
}

// claim marks a checkout as in use, so that its tree is not taken. It returns
// false if there is none of that name. undo parks it again at its former turn.
func (p *Pool) claim(name string) (ok bool, undo func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	turn, ok := p.parked[name]
	if !ok {
		return false, func() {}
	}
	p.parked[name] = 0
	return true, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.parked[name] = turn
	}
}

// forget removes the name of a checkout that no longer exists from the pool's
// count.
func (p *Pool) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parked, name)
	delete(p.coming, name)
}

// resume claims a checkout of a task and loads its state. undo parks it again
// if the caller cannot use it. Error: ErrMissing if there is none, or if it is
// for reading or half made.
func (p *Pool) resume(name git.Name) (c *Checkout, undo func(), err error) {
	if p.isClosed() {
		return nil, nil, git.ErrClosed
	}
	if _, err := git.ParseName(string(name)); err != nil {
		return nil, nil, err
	}
	missing := fmt.Errorf("checkout %s: %w", name, git.ErrMissing)
	ok, undo := p.claim(string(name))
	if !ok {
		return nil, nil, missing
	}
	c = &Checkout{pool: p, name: name}
	if err := c.load(); err != nil || c.branch == "" {
		undo()
		return nil, nil, missing
	}
	return c, undo, nil
}

// inUse notes on the disk that a checkout is not parked any more: work that a crash
// leaves in it must not be lost.
func (c *Checkout) inUse() error {
	if !c.parked {
		return nil
	}
	c.parked = false
	return c.save()
}

// take gives a tree that is not in use to name: a warm one, or, when the pool is full,
// the one that was parked longest ago. It returns false when a new one is to be made.
func (p *Pool) take(name string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock() // until it is moved, its former owner must not find half of it
	delete(p.coming, name)
	from := ""
	if n := len(p.warm); n > 0 {
		from = warmPrefix + p.warm[n-1]
		p.warm = p.warm[:n-1]
	} else if len(p.parked) > p.max { // the one that name needs is counted
		from = p.oldest()
	}
	if from == "" {
		return false, nil
	}
	delete(p.parked, from)
	if err := os.Rename(p.path(".own", from), p.path(".own", name)); err != nil {
		return false, err
	}
	p.moveIndexed(from, name)
	return true, os.Rename(p.treeOf(from), p.path(name))
}

// loadParked takes over the checkouts of a former Pool, in the order in which
// they were parked: the time of their state.json, which Park wrote last. Those
// that were in use when it ended are never taken for another task: there may be
// work in them, which Recover finds.
func (p *Pool) loadParked(names []string) error {
	type parked struct {
		name string
		at   time.Time
	}
	var list []parked
	for _, name := range names {
		p.parked[name] = 0
		c := &Checkout{pool: p, name: git.Name(name)}
		if c.load() != nil || !c.parked {
			continue
		}
		info, err := os.Stat(c.own("state.json"))
		if err != nil {
			return err
		}
		list = append(list, parked{name, info.ModTime()})
	}
	slices.SortFunc(list, func(a, b parked) int { return a.at.Compare(b.at) })
	for _, l := range list {
		p.serial++
		p.parked[l.name] = p.serial
	}
	return p.trim()
}
