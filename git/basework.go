package git

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// begin sees to it that what is to be done in the background is done.
func (b *bases) begin() {
	if b.working || b.ctx.Err() != nil {
		return
	}
	if t, _ := b.next(); t == nil {
		return
	}
	b.working = true
	b.work.Go(b.run)
}

// next returns the tree that is to be looked at, or written with a commit; nil when there is nothing to do.
func (b *bases) next() (t *base, write OID) {
	if b.ctx.Err() != nil || b.off {
		return nil, ""
	}
	if b.due(b.head) && b.of(b.head) == nil {
		return b.pick(), b.head
	}
	for _, t := range b.trees {
		if t.suspect {
			return t, ""
		}
	}
	return nil, ""
}

// due says whether there is to be a tree of a commit.
func (b *bases) due(at OID) bool { return b.wanted && at != "" && at == b.head && at != b.failed }

// pick returns a tree that may be written to: rather not the newest, which somebody may still want to start from.
func (b *bases) pick() *base {
	var found *base
	for _, t := range b.trees {
		if t.users == 0 && (found == nil || found == b.newest) {
			found = t
		}
	}
	if found == nil {
		found = &base{name: strconv.Itoa(b.serial + 1)}
	}
	return found
}

func (b *bases) run() {
	b.probe()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		t, at := b.next()
		if t == nil {
			break
		}
		if at == "" {
			b.look(t)
		} else {
			b.make(t, at)
		}
		surplus := b.trim()
		close(b.turn)
		b.turn = make(chan struct{})
		b.mu.Unlock()
		b.throw(surplus)
		b.mu.Lock()
	}
	b.working = false
	close(b.turn)
	b.turn = make(chan struct{})
}

// probe finds out, the first time, whether mounting is permitted.
func (b *bases) probe() {
	if b.probed || b.off {
		return
	}
	b.probed = true
	if err := ProbeOverlay(b.pool.dir); err != nil {
		b.log.Info("checkouts are made without overlay mounts", "reason", err)
		b.mu.Lock()
		b.off = true
		b.mu.Unlock()
	}
}

// make brings a tree to a commit.
func (b *bases) make(t *base, at OID) {
	n, _ := strconv.Atoi(t.name)
	b.trees[t.name], b.serial, b.making = t, max(b.serial, n), at
	t.at, t.writing, t.suspect = "", true, false // it is compared while it is written
	b.mu.Unlock()
	err := b.write(b.ctx, t.name, at)
	b.mu.Lock()
	t.writing, b.making = false, ""
	if err == nil {
		t.at, b.newest = at, t
		return
	}
	if b.failed = at; b.ctx.Err() == nil {
		b.log.Warn("cannot make the tree that overlay checkouts are mounted over; checkouts are made without", "commit", at, "error", err)
	}
}

// look compares a tree with its index.
func (b *bases) look(t *base) {
	t.suspect, t.looking = false, true
	b.mu.Unlock()
	f := b.files(t.name)
	index, err := readIndex(f.index)
	same := false
	if err == nil {
		same, err = f.pristine(index)
	}
	b.mu.Lock()
	t.looking = false
	if same || t.at == "" {
		return
	}
	t.at = ""
	b.log.Warn("something has changed a tree that overlay checkouts are mounted over; another one is made", "path", f.dir, "error", err)
	if err := os.Remove(b.mark(t.name)); err != nil {
		b.log.Warn("cannot forget what a tree was", "error", err)
	}
}

func (b *bases) mark(name string) string { return b.pool.path(".base", name, "at.json") }

// baseState is at.json.
type baseState struct {
	At   OID    `json:"at"`
	Boot string `json:"boot"` // in which start of the machine: what came before may have been cut off with the power
}

// write makes the files of a tree those of a commit.
func (b *bases) write(ctx context.Context, name string, at OID) error {
	f, mark := b.files(name), b.mark(name)
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

// bootID names this start of the machine; empty where that is not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
