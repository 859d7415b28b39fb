package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Opened knows the open intents of all projects, for who counts them again and again.
// A Refresh reads what the journals have since the one before, and the first one goes
// on from a list: ended intents cost nothing. It is used by one goroutine at a time.
type Opened struct {
	journal *Journal
	at      Open
	// intents has nil for those that the list has and that were not read yet,
	// and for those that this version cannot read.
	intents map[forge.Key]*Counted
	// seen are the intents whose journals were read by the last Refresh, and
	// late those of them that were read behind the place up to which it is
	// whole: a server that fails may lose just that, without another sign of it.
	seen, late map[forge.Key]bool
}

// NewOpened returns an Opened that goes on from a list, of which the zero value is none.
func (j *Journal) NewOpened(list Open) *Opened { return &Opened{journal: j, at: list} }

// Refresh reads the intents that have changed. After an error, the next call reads them.
func (o *Opened) Refresh(ctx context.Context) error {
	now, err := o.journal.newest(ctx)
	if err != nil {
		return fmt.Errorf("refresh open intents: %w", err)
	}
	open, found, err := o.since(ctx, &now)
	if err != nil && ctx.Err() == nil { // whatever it is, the journals have all that the list has
		open = map[forge.Key]*Counted{}
		found, err = newsOfAll(ctx, o.journal)
	}
	if err != nil {
		return fmt.Errorf("refresh open intents: %w", err)
	}
	o.at, o.intents = now, open
	o.seen, o.late = make(map[forge.Key]bool, len(found)), map[forge.Key]bool{}
	for key, n := range found {
		o.seen[key] = true
		if n.seq > now.Seq {
			o.late[key] = true
		}
		delete(open, key)
		if !n.open(now.Seq) {
			continue
		}
		if open[key] = nil; n.summary != nil {
			one := counted(n.summary)
			open[key] = &one
		}
	}
	return nil
}

// since returns the open intents as of the last Refresh, each with what counts
// of it, and what counts of the journals that have gone on since.
func (o *Opened) since(ctx context.Context, now *Open) (map[forge.Key]*Counted, map[forge.Key]news, error) {
	found, _, err := newsSince(ctx, o.journal, &o.at, now, mostSince)
	if err != nil {
		return nil, nil, err
	}
	for key := range o.late {
		if _, again := found[key]; !again {
			return nil, nil, errNotThere // lost
		}
	}
	open := make(map[forge.Key]*Counted, len(o.intents))
	maps.Copy(open, o.intents)
	var unread []string
	for _, key := range o.at.Intents {
		subject, err := subjects.Journal(key)
		if err != nil || key.IsProject() {
			return nil, nil, errNotThere // it was not kept by Open
		}
		if _, again := found[key]; !again {
			unread = append(unread, subject)
		}
	}
	last, err := o.journal.conn.LastsOf(ctx, streams.Journal, unread, now.Seq)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range last {
		key, err := subjects.ParseJournal(m.Subject)
		if err == nil {
			found[key], err = newsOf(ctx, o.journal, m)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return open, found, nil
}

// All returns the open intents that this version understands, in no order.
func (o *Opened) All() []Counted {
	list := make([]Counted, 0, len(o.intents))
	for _, one := range o.intents {
		if one != nil {
			list = append(list, *one)
		}
	}
	return list
}

// Seen reports whether the journal of an intent has gone on, or begun, between
// the Refresh before the last one and the last one.
func (o *Opened) Seen(key forge.Key) bool { return o.seen[key] }

// Knows reports whether an intent has a journal now, whoever understands it.
func (j *Journal) Knows(ctx context.Context, key forge.Key) (bool, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return false, nil //nolint:nilerr // no machine has such a name
	}
	_, err = j.conn.Last(ctx, journalStream(subject), subject)
	if errors.Is(err, conn.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
