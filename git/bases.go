package git

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// bases are the trees that overlay checkouts are mounted over: the files of a commit, that nobody works in.
//
//	<dir>/.base/<n>/files/   the tree; it never changes while a checkout is mounted over it
//	<dir>/.base/<n>/index    ours
//	<dir>/.base/<n>/at.json  which commit the files are of; not there while they are being written
//
// One is made when the first task starts from the head of the base branch, and follows it from then on in the background:
// the one that is free, or a new one while tasks are mounted over all others. Up to two that are free are kept.
type bases struct {
	pool *Pool
	log  *slog.Logger

	mu     sync.Mutex
	trees  map[string]*base
	newest *base
	serial int
	head   OID           // where the base branch is
	wanted bool          // tasks start from there
	failed OID           // what could not be made
	probed bool          // it is known whether mounting is permitted; of make alone
	off    bool          // mounting is not permitted, or not wished
	making OID           // empty while nothing is being made
	made   chan struct{} // closed when it is

	stop    context.CancelFunc
	stopped context.Context //nolint:containedctx // of the work in the background, which no call waits for
	work    sync.WaitGroup
}

// base is one of the trees.
type base struct {
	name  string
	at    OID  // empty when its files are not surely those of a commit
	users int  // checkouts that are mounted over it, or will be again
	taken bool // being written
}

const maxFree = 2 // trees that nobody uses and that are kept

func newBases(p *Pool, off bool) *bases {
	b := &bases{pool: p, log: p.log, off: off, trees: map[string]*base{}}
	b.stopped, b.stop = context.WithCancel(context.Background())
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

// Idle waits until what Follow began has ended, or ctx has.
func (p *Pool) Idle(ctx context.Context) error {
	b := p.bases
	for {
		b.mu.Lock()
		making, made := b.making, b.made
		b.mu.Unlock()
		if making == "" {
			return nil
		}
		select {
		case <-made:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin starts to make the tree of the head, unless there is one, or something else is being made: that is followed by it.
func (b *bases) begin() {
	if b.off || !b.wanted || b.making != "" || b.head == "" || b.head == b.failed || b.of(b.head) != nil || b.stopped.Err() != nil {
		return
	}
	b.making, b.made = b.head, make(chan struct{})
	b.work.Go(b.make)
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

// acquire returns the tree of a commit, which will not change until it is released. It waits for one that is being made.
// It returns nil when there is none: then checkouts are made without.
func (b *bases) acquire(ctx context.Context, at OID) *base {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at == b.head {
		b.wanted = true
		b.begin()
	}
	if b.making == at {
		made := b.made
		b.mu.Unlock()
		select {
		case <-made:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	t := b.of(at)
	if t == nil || b.off {
		return nil
	}
	t.users++
	return t
}

// release says that a checkout is not mounted over the tree any more, and never will be.
func (b *bases) release(name string) {
	b.mu.Lock()
	if t := b.trees[name]; t != nil {
		t.users--
	}
	b.mu.Unlock()
	b.trim()
}

// make brings a tree to the head, in the background.
func (b *bases) make() {
	b.probe()
	b.mu.Lock()
	if b.off {
		b.ended()
		b.mu.Unlock()
		return
	}
	at, t := b.making, b.pick()
	t.at, t.taken = "", true
	b.mu.Unlock()
	err := b.write(b.stopped, t.name, at)
	b.mu.Lock()
	t.taken = false
	if err == nil {
		t.at, b.newest = at, t
	} else if b.failed = at; b.stopped.Err() == nil {
		b.log.Warn("cannot make the tree that overlay checkouts are mounted over; checkouts are made without", "commit", at, "error", err)
	}
	b.ended()
	b.begin() // the head may have moved meanwhile
	b.mu.Unlock()
	b.trim()
}

func (b *bases) ended() {
	close(b.made)
	b.making = ""
}

// probe finds out, the first time, whether mounting is permitted.
func (b *bases) probe() {
	if b.probed {
		return
	}
	b.probed = true
	err := ProbeOverlay(b.pool.dir)
	if err == nil {
		return
	}
	b.log.Info("checkouts are made without overlay mounts", "reason", err)
	b.mu.Lock()
	b.off = true
	b.mu.Unlock()
	b.trim()
}

// pick returns a tree that may be written to: rather not the newest, which somebody may still want to start from.
func (b *bases) pick() *base {
	var found *base
	for _, t := range b.trees {
		if t.users == 0 && !t.taken && (found == nil || found == b.newest) {
			found = t
		}
	}
	if found == nil {
		b.serial++
		found = &base{name: strconv.Itoa(b.serial)}
		b.trees[found.name] = found
	}
	return found
}

// trim throws away trees that are of no use.
func (b *bases) trim() {
	b.mu.Lock()
	var surplus []string
	free, most := 0, maxFree
	if b.off {
		most, b.newest = 0, nil
	}
	for _, t := range b.trees {
		if t.users == 0 && !t.taken {
			free++
		}
	}
	for name, t := range b.trees {
		if free > most && t.users == 0 && !t.taken && t != b.newest {
			surplus = append(surplus, name)
			delete(b.trees, name)
			free--
		}
	}
	b.mu.Unlock()
	for _, name := range surplus {
		if err := b.pool.throw(b.pool.path(".base", name)); err != nil {
			b.log.Warn("cannot remove an old tree", "path", b.pool.path(".base", name), "error", err)
		}
	}
}

// baseState is at.json.
type baseState struct {
	At   OID    `json:"at"`
	Boot string `json:"boot"` // in which start of the machine: what came before may have been cut off with the power
}

// write makes the files of a tree those of a commit.
func (b *bases) write(ctx context.Context, name string, at OID) error {
	f, mark := b.files(name), b.pool.path(".base", name, "at.json")
	if err := errors.Join(ignoreMissing(os.Remove(mark)), ignoreMissing(os.Remove(f.index+".lock"))); err != nil {
		return err
	}
	used := isDir(f.dir) && exists(f.index)
	var err error
	if used {
		if err = f.fill(ctx, at, true); err != nil && ctx.Err() == nil {
			b.log.Warn("a tree cannot be used again", "path", f.dir, "error", err)
			used = false
		}
	}
	if !used {
		if err = b.pool.throw(filepath.Dir(f.dir)); err == nil {
			err = os.MkdirAll(f.dir, 0o755)
		}
		if err == nil {
			err = f.fill(ctx, at, false)
		}
	}
	if err != nil {
		return err
	}
	state, err := json.Marshal(baseState{At: at, Boot: bootID()})
	if err != nil {
		return err
	}
	return writeFile(mark, state)
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
		t := &base{name: e.Name()}
		var state baseState
		raw, err := os.ReadFile(b.pool.path(".base", t.name, "at.json"))
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
	if n, err := strconv.Atoi(name); err != nil || n <= 0 {
		return fmt.Errorf("tree %q: not one of ours", clip(name))
	}
	t := b.trees[name]
	if t == nil {
		t = &base{name: name}
		b.trees[name] = t
	}
	if t.at != at {
		if t.users > 0 {
			return fmt.Errorf("tree %s is of two commits", name)
		}
		if err := b.write(ctx, name, at); err != nil {
			return err
		}
		t.at = at
	}
	t.users++
	return nil
}

// close ends the work in the background.
func (b *bases) close() {
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.work.Wait()
}

// bootID names this start of the machine; empty where that is not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
