package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

const (
	// openSeldom is how many times as many records of intents are appended before the list of open ones is kept anew as are before a
	// snapshot of a project is. A start reads at most about so many.
	openSeldom = 4
	// openWait bounds the wait for the list at a start; without it, the last record of each journal is read.
	openWait = 2 * time.Second
)

// openName names the list of open intents. Another version may take other intents for open, so it has a list of its own.
func openName() objects.Name { return objects.Name{Kind: objects.Open, ID: machine.Rules()} }

// open returns the intents of which more is to come, and the list that it began with: the one that was kept last, which is never the truth. One
// that does not fit the journals is not used.
func (r *runner) open(ctx context.Context) (now, before journal.Open, err error) {
	reading, cancel := context.WithTimeout(ctx, openWait)
	o, err := r.snapshots.store.Read(reading, openName())
	cancel()
	if err != nil || json.Unmarshal(o.Content, &before) != nil {
		before = journal.Open{}
	}
	now, err = r.bus.Journal.Open(ctx, before)
	return now, before, err
}

// readMuch reports whether so much was read for a list of open intents that it is to be kept.
func (r *runner) readMuch(now, before *journal.Open) bool {
	read := now.Seq
	if !now.Whole {
		read -= min(before.Seq, now.Seq)
	}
	return read >= uint64(r.snapshots.every*openSeldom/2)
}

// listed has the list of open intents of a start kept if much was read for it. From then on the list is not for the caller any more.
func (r *runner) listed(now, before *journal.Open) {
	if !r.readMuch(now, before) {
		return
	}
	r.snapshots.mu.Lock()
	defer r.snapshots.mu.Unlock()
	r.snapshots.ask(due{open: now})
}

// keepOpen keeps a list of open intents, or one that is made then, unless another runner has just kept one. Where two write at the same time,
// one of them wins, and each is true.
func (r *runner) keepOpen(ctx context.Context, list *journal.Open) error {
	if list == nil {
		now, before, err := r.open(ctx)
		if err != nil || !r.readMuch(&now, &before) {
			return err
		}
		list = &now
	}
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("write the list of open intents: %w", err)
	}
	return r.snapshots.store.Put(ctx, openName(), bytes.NewReader(data))
}
