package git

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
)

// bases are the trees that overlay checkouts are mounted over: the files of a commit, that nobody works in.
//
//	<dir>/.base/<n>/files/   the tree; it never changes while a checkout is mounted over it
//	<dir>/.base/<n>/index    ours
//	<dir>/.base/<n>/at.json  which commit the files are of; not there while they are being written
//
// One is made when the first task starts from the head of the base branch, and follows it from then on in the background:
// the one that is free, or a new one while tasks are mounted over all others. Up to two that are free are kept. When a
// checkout is given back, its tree is compared with its index before others start from it, because an agent that is not
// confined can find it.
type bases struct {
	pool *Pool
	log  *slog.Logger

	mu     sync.Mutex
	trees  map[string]*base
	newest *base
	serial int
	head   OID  // where the base branch is
	wanted bool // tasks start from there
	off    bool // mounting is not permitted, or not wished
	failed OID  // what could not be made

	working bool          // in the background
	making  OID           // the tree that is being written
	turn    chan struct{} // closed, and another one, at each step of that work
	probed  bool          // it is known whether mounting is permitted; of that work alone
	work    sync.WaitGroup
	ctx     context.Context //nolint:containedctx // of that work, which no call waits for to its end
	cancel  context.CancelFunc
}

// base is one of the trees.
type base struct {
	name    string
	at      OID  // empty when its files are not surely those of a commit
	users   int  // checkouts that are mounted over it, or will be again
	writing bool // just now
	suspect bool // an agent may have found it: to be compared with its index
	looking bool // that is being done
}

const maxFree = 2 // trees that nobody uses and that are kept

func newBases(p *Pool, off bool) *bases {
	b := &bases{pool: p, log: p.log, off: off, trees: map[string]*base{}, turn: make(chan struct{})}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *bases) files(name string) files {
	return files{pool: b.pool, dir: b.pool.path(".base", name, "files"), index: b.pool.path(".base", name, "index")}
}

// Follow tells the Pool which commit the next tasks will start from. If they are overlay checkouts, what they need is
// made ready in the background. It does not wait.
func (p *Pool) Follow(head OID) {
	b := p.bases
	b.mu.Lock()
	defer b.mu.Unlock()
	b.head = head
	b.begin()
}

// Idle waits until there is nothing to do in the background for the next overlay checkout, or ctx ends.
func (p *Pool) Idle(ctx context.Context) error {
	b := p.bases
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.working && ctx.Err() == nil {
		b.wait(ctx)
	}
	return context.Cause(ctx)
}

// wait lets go of the lock until something has changed.
func (b *bases) wait(ctx context.Context) {
	turn := b.turn
	b.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	b.mu.Lock()
}

// of returns the tree of a commit, nil if there is none.
func (b *bases) of(at OID) *base {
	for _, t := range b.trees {
		if t.at == at {
			return t
		}
	}
	return nil
}

// acquire returns the tree of a commit, which will not change until it is released. It waits for one that is being made
// or looked at. It returns nil when there is none: then checkouts are made without.
func (b *bases) acquire(ctx context.Context, at OID) *base {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at == b.head {
		b.wanted = true
		b.begin()
	}
	for ctx.Err() == nil && !b.off {
		t := b.of(at)
		if t != nil && !t.suspect && !t.looking {
			t.users++
			return t
		}
		if !b.working || t == nil && b.making != at && !b.due(at) {
			break
		}
		b.wait(ctx)
	}
	return nil
}

// suspect says that an agent has ended that may have found the tree.
func (b *bases) suspect(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trees[name]; t != nil {
		t.suspect = true
	}
	b.begin()
}

// release says that a checkout is not mounted over the tree any more, and never will be.
func (b *bases) release(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trees[name]; t != nil {
		t.users--
	}
	b.begin()
}

// load finds the trees that a former life left.
func (b *bases) load() error {
	entries, err := os.ReadDir(b.pool.path(".base"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n <= 0 || !isDir(b.files(e.Name()).dir) {
			if err := b.pool.throw(b.pool.path(".base", e.Name())); err != nil {
				return err
			}
			continue
		}
		t := &base{name: e.Name(), suspect: true}
		var state baseState
		raw, err := os.ReadFile(b.mark(t.name))
		if err == nil && json.Unmarshal(raw, &state) == nil && state.Boot == bootID() && exists(b.files(t.name).index) {
			t.at = state.At
		}
		b.trees[t.name] = t
		b.serial = max(b.serial, n)
		b.wanted = true
	}
	return nil
}

// again makes sure that a tree that a checkout was mounted over is as it was, and counts the checkout.
func (b *bases) again(ctx context.Context, name string, at OID) error {
	n, err := strconv.Atoi(name)
	if err != nil || n <= 0 {
		return fmt.Errorf("tree %q: not one of ours", clip(name))
	}
	t := b.trees[name]
	if t == nil {
		t = &base{name: name}
		b.trees[name], b.serial = t, max(b.serial, n)
	}
	if t.at != at {
		if t.users > 0 {
			return fmt.Errorf("tree %s is of two commits", name)
		}
		if err := b.write(ctx, name, at); err != nil {
			return err
		}
		t.at, t.suspect = at, false
	}
	t.users++
	return nil
}

// trim forgets trees that are of no use, and returns where they are.
func (b *bases) trim() (surplus []string) {
	free, most := 0, maxFree
	if b.off {
		most, b.newest = 0, nil
	}
	for _, t := range b.trees {
		if t.users == 0 && !t.writing {
			free++
		}
	}
	for name, t := range b.trees {
		if free > most && t.users == 0 && !t.writing && t != b.newest {
			surplus = append(surplus, b.pool.path(".base", name))
			delete(b.trees, name)
			free--
		}
	}
	return surplus
}

// throw removes what trim returned.
func (b *bases) throw(surplus []string) {
	for _, dir := range surplus {
		if err := b.pool.throw(dir); err != nil {
			b.log.Warn("cannot remove an old tree", "path", dir, "error", err)
		}
	}
}

// stop ends the work in the background.
func (b *bases) stop() {
	b.mu.Lock()
	b.cancel()
	b.mu.Unlock()
	b.work.Wait()
}
