package runner

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/quota"
)

// door lets submissions in as far as quotas have room. Of one runner the bound
// is exact. Others may at the same moment let in what this one cannot see yet:
// each of them as many as it decides on at once.
type door struct {
	// begun counts the looks at the journals that have begun. Together with done it says
	// whether a look that ended began after it was asked for, and so shows what was there then.
	begun atomic.Uint64

	journal *journal.Journal
	// list returns the list of open intents that the first look goes on from.
	list func(context.Context) journal.Open

	look sync.Mutex // held while looking
	// opened is nil before the first look.
	opened *journal.Opened
	// done is the number of the last look that succeeded.
	done uint64

	mu   sync.Mutex
	book *quota.Book
}

// newDoor returns a door that looks before it lets the first one in: what is
// open may be of former runners.
func newDoor(j *journal.Journal, list func(context.Context) journal.Open, l quota.Limits) *door {
	return &door{journal: j, list: list, book: quota.NewBook(l)}
}

// enter lets an intent in until leave is called or a look shows it; or it
// returns which quota has no room. An intent that has a journal already is let
// in always: it was accepted, or its id is taken, and the rules say which.
func (d *door) enter(ctx context.Context, h quota.Holder) (leave func(), full *forge.FieldError, err error) {
	d.mu.Lock()
	must := d.book.MustLook(h)
	d.mu.Unlock()
	// The look is taken without the lock of the book, because it asks the server.
	// What others let in meanwhile is counted by Enter below all the same.
	if must {
		if known, err := d.lookFor(ctx, h.Key); known || err != nil {
			return func() {}, nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	entered, full := d.book.Enter(h)
	return func() {
		if entered {
			d.leave(h)
		}
	}, full, nil
}

// leave takes back that an intent was let in.
func (d *door) leave(h quota.Holder) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.book.Leave(h)
}

// lookFor looks at the journals, and reports whether an intent has one.
// Submissions that come during a look share the next.
func (d *door) lookFor(ctx context.Context, key forge.Key) (bool, error) {
	if err := d.lookAfter(ctx, d.begun.Load()); err != nil {
		return false, fmt.Errorf("counting open intents: %w", err)
	}
	return d.journal.Knows(ctx, key)
}

// lookAfter returns when a look has ended that began after so many others.
func (d *door) lookAfter(ctx context.Context, others uint64) error {
	d.look.Lock()
	defer d.look.Unlock()
	if d.done > others { // it began after this one was asked for
		return nil
	}
	number := d.begun.Add(1)
	if d.opened == nil {
		d.opened = d.journal.NewOpened(d.list(ctx))
	}
	if err := d.opened.Refresh(ctx); err != nil {
		return err
	}
	// An intent that waits for a person is open as well: its journal, its
	// checkout and its place in lists are paid for.
	var open []quota.Holder
	for _, one := range d.opened.All() {
		if !one.Status.Ended() {
			open = append(open, quota.Holder{Key: one.Key, System: one.System})
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// What entered after the look before has a journal that is new in this one, or none yet.
	d.book.Look(open, d.opened.Seen)
	d.done = number
	return nil
}
