package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// mostSince is how many messages are read to bring a list of open intents up to
// date. Where more followed, the last record of each journal is read instead.
const mostSince = 50_000

// Open has the intents of all projects of which more is to come, as of a
// message of their journals. Where it was kept, only what the journals have
// since is read for the next one: ended intents cost nothing.
type Open struct {
	// Seq, Hash and At are of the newest message then; zero where there was none. With the time
	// at which the server stored it, one that was stored again after a loss is another message.
	Seq  uint64
	Hash chain.Hash
	At   time.Time
	// Gone counts the messages that the stream had lost by then. It loses none while all is well.
	Gone uint64
	// Intents are sorted. Those whose journals went on behind that message while they were read are
	// among them, ended or not: a server that loses what it stored last has no other sign of it.
	Intents []forge.Key
	// Read is the Seq of the list for which the last record of every journal
	// was read, and Journals how many there were.
	Read     uint64
	Journals int
	// Whole says that it is this one.
	Whole bool `json:"-"`
}

// Open returns the intents that are open now. What is known of before is used if the
// stream has that very message, has lost none since, and has gone on by few; the zero
// value is never used. An intent whose last record takes a newer version is open.
func (j *Journal) Open(ctx context.Context, before Open) (Open, error) {
	now, err := j.newest(ctx)
	if err != nil {
		return Open{}, fmt.Errorf("list open intents: %w", err)
	}
	if now.Seq == 0 {
		return Open{}, nil
	}
	if err := j.readOpen(ctx, &before, &now); err != nil {
		return Open{}, fmt.Errorf("list open intents: %w", err)
	}
	return now, nil
}

// newest returns a list of nothing as of the newest message of the journals of
// intents; the zero value if there is none.
func (j *Journal) newest(ctx context.Context) (Open, error) {
	// What is lost between the two counts as lost after the list.
	state, err := j.conn.State(ctx, streams.Journal)
	if err != nil {
		return Open{}, err
	}
	if state.LastSeq == 0 { // nothing was stored yet, or the stream is gone
		return Open{}, nil
	}
	newest, err := j.conn.Last(ctx, streams.Journal, subjects.EveryJournal)
	if errors.Is(err, conn.ErrNotFound) {
		return Open{}, nil
	}
	if err != nil {
		return Open{}, err
	}
	now := Open{Seq: newest.Seq, Hash: chain.Of(newest.Subject, newest.Data), Gone: state.LastSeq - min(state.Msgs, state.LastSeq)}
	now.At, _ = newest.At() // without a time, it is no message to go on from
	return now, nil
}

// readOpen notes the intents that are open as of the message of a list, from an
// earlier list if it fits.
func (j *Journal) readOpen(ctx context.Context, before, now *Open) error {
	open, err := j.openSince(ctx, before, now)
	now.Read, now.Journals = before.Read, before.Journals
	if err != nil && ctx.Err() == nil { // whatever it is, the journals have all that the list has
		now.Whole, now.Read = true, now.Seq
		open, err = j.openOfAll(ctx, now.Seq)
		now.Journals = len(open)
	}
	if err != nil {
		return err
	}
	maps.DeleteFunc(open, func(_ forge.Key, is bool) bool { return !is })
	now.Intents = slices.SortedFunc(maps.Keys(open), func(a, b forge.Key) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.Intent, b.Intent))
	})
	return nil
}

// isOpen reports whether more is to come of an intent.
func isOpen(s *forge.Summary) bool { return !s.Idle || !s.Status.Ended() }

// openOfAll reads the last record of each journal.
func (j *Journal) openOfAll(ctx context.Context, upTo uint64) (map[forge.Key]bool, error) {
	found, err := newsOfAll(ctx, j)
	if err != nil {
		return nil, err
	}
	open := make(map[forge.Key]bool)
	for key, n := range found {
		open[key] = n.open(upTo)
	}
	return open, nil
}

// open reports whether an intent is open in a list. One whose journal went on
// behind the message that the list is made at is, without a look, since what is
// before that may be what is left of the journal.
func (n *news) open(upTo uint64) bool {
	return n.newer || n.seq > upTo || n.summary != nil && isOpen(n.summary)
}

// openSince goes on from a list with what the journals have since, up to a later one at
// least. It returns an error if the list is not of this stream, or if that cannot be told.
func (j *Journal) openSince(ctx context.Context, before, now *Open) (map[forge.Key]bool, error) {
	open := make(map[forge.Key]bool)
	for _, key := range before.Intents {
		if subjects.CheckIntent(key) != nil {
			return nil, errNotThere // it was not kept by Open
		}
		open[key] = true
	}
	found, _, err := newsSince(ctx, j, before, now, mostSince)
	for key, n := range found {
		open[key] = n.open(now.Seq)
	}
	return open, err
}

// behind calls do with every message behind the one that a list was made at, up to a
// sequence at least. It returns errNotThere if the stream does not have that very
// message, if one is missing between the two, or if the replica that answers is behind.
func (j *Journal) behind(ctx context.Context, list *Open, upTo uint64, do func(conn.Stored) error) error {
	first, next := true, list.Seq
	last, err := j.conn.EachAfter(ctx, list.Seq-1, streams.Journal, subjects.EveryJournal, func(m conn.Stored) error {
		if m.Seq != next && m.Seq <= upTo {
			return errNotThere
		}
		next = m.Seq + 1
		if !first {
			return do(m)
		}
		first = false
		at, err := m.At()
		if err != nil || m.Seq != list.Seq || !at.Equal(list.At) || chain.Of(m.Subject, m.Data) != list.Hash {
			return errNotThere
		}
		return nil
	})
	if err == nil && (first || last < upTo) {
		return errNotThere
	}
	return err
}
