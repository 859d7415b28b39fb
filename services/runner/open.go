package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/logging"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

const (
	// openSeldom is how many times as many records of intents are appended
	// before the list of open ones is kept anew as are before a snapshot of a
	// project is. A start reads at most about so many.
	openSeldom = 4
	// checkSeldom is how many records have to be appended for each journal that
	// there is before the list is compared with all of them: to read one more
	// record for so many is not noticed, however many there are.
	checkSeldom = 20
	// openWait bounds the wait for the list at a start; without it, the last
	// record of each journal is read.
	openWait = 2 * time.Second
)

// openName names the list of open intents. Another version may take other
// intents for open, so it has a list of its own.
func openName() objects.Name { return objects.Name{Kind: objects.Open, ID: machine.Rules()} }

// open returns the intents of which more is to come, and the list that it began with: the one
// that was kept last, which is never the truth. One that does not fit the journals is not used.
func (r *runner) open(ctx context.Context) (now, before journal.Open, err error) {
	before = r.keptOpen(ctx)
	now, err = r.bus.Journal.Open(ctx, before)
	return now, before, err
}

// keptOpen returns the list of open intents that was kept last; the zero value
// if there is none that can be read.
func (r *runner) keptOpen(ctx context.Context) (list journal.Open) {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	o, err := r.snapshots.store.Read(ctx, openName())
	if err != nil || json.Unmarshal(o.Content, &list) != nil {
		return journal.Open{}
	}
	return list
}

// readMuch reports whether so much was read for a list of open intents that it is to be kept.
func (r *runner) readMuch(now, before *journal.Open) bool {
	read := now.Seq
	if !now.Whole {
		read -= min(before.Seq, now.Seq)
	}
	return read >= uint64(r.snapshots.every*openSeldom/2)
}

// listed has the list of open intents of a start kept if much was read for it.
// From then on the list is not for the caller any more.
func (r *runner) listed(now, before *journal.Open) {
	if !r.readMuch(now, before) {
		return
	}
	r.snapshots.mu.Lock()
	defer r.snapshots.mu.Unlock()
	r.snapshots.ask(due{open: now})
}

// checkOpen compares a list with the last record of every journal, and returns the list that
// follows from these. What was missing in it, which no start would have gone on with, is taken up.
func (r *runner) checkOpen(ctx context.Context, list *journal.Open) (journal.Open, error) {
	all, err := r.bus.Journal.Open(ctx, journal.Open{})
	if err != nil {
		return all, err
	}
	// What has ended since is in neither, and what was asked for since in both.
	now, err := r.bus.Journal.Open(ctx, *list)
	if err != nil || now.Whole {
		return all, err
	}
	for _, key := range all.Intents {
		if slices.Contains(now.Intents, key) {
			continue
		}
		s, err := r.bus.Journal.Summary(ctx, key)
		if err == nil && s.Idle && s.Status.Ended() {
			continue
		}
		r.log.ErrorContext(logging.Machine(ctx, key), "an open intent was missing in the list from which a start continues; it is taken up")
		if _, err := r.driver.Recover(ctx, key); r.skipUnreadable(ctx, key, err) != nil {
			return all, err
		}
	}
	return all, nil
}

// keepOpen keeps a list of open intents, or one that is made then, unless another runner
// has just kept one. Where two write at the same time, one of them wins, and each is true.
func (r *runner) keepOpen(ctx context.Context, list *journal.Open) error {
	if list == nil {
		now, before, err := r.open(ctx)
		if err != nil || !r.readMuch(&now, &before) {
			return err
		}
		list = &now
	}
	if list.Read+uint64(max(r.snapshots.every*openSeldom, checkSeldom*list.Journals)) < list.Seq {
		all, err := r.checkOpen(ctx, list)
		if err != nil {
			return err
		}
		list = &all
	}
	data, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("write the list of open intents: %w", err)
	}
	return r.snapshots.store.Put(ctx, openName(), bytes.NewReader(data))
}
