package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
)

const (
	// openSeldom is how many times as many records of intents are appended before the list of open ones is kept anew as are before a
	// snapshot of a project is. A start reads at most about so many.
	openSeldom = 4
	// openWait bounds the wait for the list at a start; without it, the last record of each journal is read.
	openWait = 2 * time.Second
)

// openName names the list of open intents.
var openName = objects.Name{Kind: objects.Open}

// open returns the intents of which more is to come. It begins with the list that was kept last, which is never the truth: one that does not fit
// the journals is not used.
func (r *runner) open(ctx context.Context) (now, before journal.Open, err error) {
	reading, cancel := context.WithTimeout(ctx, openWait)
	o, err := r.snapshots.store.Read(reading, openName)
	cancel()
	if err != nil || json.Unmarshal(o.Content, &before) != nil {
		before = journal.Open{}
	}
	now, err = r.bus.Journal.Open(ctx, before)
	return now, before, err
}

// listed has the list of open intents kept if much was read for it.
func (r *runner) listed(now *journal.Open) {
	if now.Whole && now.Seq >= uint64(r.snapshots.every) {
		r.snapshots.mu.Lock()
		defer r.snapshots.mu.Unlock()
		r.snapshots.ask(due{})
	}
}

// keepOpen keeps the list of open intents, unless another runner has just done so.
func (r *runner) keepOpen(ctx context.Context) error {
	now, before, err := r.open(ctx)
	if err != nil || !now.Whole && now.Seq-before.Seq < uint64(r.snapshots.every*openSeldom/2) {
		return err
	}
	data, err := json.Marshal(&now)
	if err != nil {
		return fmt.Errorf("write the list of open intents: %w", err)
	}
	return r.snapshots.store.Put(ctx, openName, bytes.NewReader(data))
}
