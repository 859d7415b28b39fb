package journal

import (
	"context"
	"errors"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// news says how far the journal of an intent has come since a list was made.
type news struct {
	// seq is that of the last message.
	seq uint64
	// summary is nil if no record of the journal can be read.
	summary *forge.Summary
	// newer says that the last record takes a newer version: then there is no summary, either.
	newer bool
}

// newsSince returns the news of every intent whose journal has a message behind the one that a list
// was made at, up to that of a later list at least. It reads at most so many messages, and returns
// errNotThere if the list is not of this stream, if more have followed, or if that cannot be found
// out: then the last message of each journal decides. strange reports messages of no machine.
func newsSince(ctx context.Context, j *Journal, before, now *Open, most uint64) (found map[forge.Key]news, strange bool, err error) {
	if before.Seq == 0 || before.Gone != now.Gone || now.Seq < before.Seq || now.Seq-before.Seq > most {
		return nil, false, errNotThere
	}
	found = map[forge.Key]news{}
	unclear := map[forge.Key]string{}
	err = j.behind(ctx, before, now.Seq, func(m conn.Stored) error {
		key, err := subjects.ParseJournal(m.Subject)
		if err != nil {
			strange = true
			return nil //nolint:nilerr // no machine has this journal
		}
		s, err := m.Summary()
		if err != nil {
			unclear[key] = m.Subject
			return nil //nolint:nilerr // garbage, a mark, or of a newer version: what counts is found out below
		}
		delete(unclear, key)
		found[key] = news{seq: m.Seq, summary: &s}
		return nil
	})
	for key, subject := range unclear {
		if err != nil {
			break
		}
		var m conn.Stored
		if m, err = j.conn.Last(ctx, streams.Journal, subject); err == nil {
			found[key], err = newsOf(ctx, j, m)
		}
	}
	return found, strange, err
}

// newsOf returns the news of a journal by its last message.
func newsOf(ctx context.Context, j *Journal, last conn.Stored) (news, error) {
	s, err := j.summaryOf(ctx, last)
	if errors.Is(err, conn.ErrNotFound) {
		return news{seq: last.Seq}, nil
	}
	if _, newer := errors.AsType[*wire.UnknownError](err); newer {
		return news{seq: last.Seq, newer: true}, nil
	}
	return news{seq: last.Seq, summary: &s}, err
}

// newsOfAll returns the news of every journal there is.
func newsOfAll(ctx context.Context, j *Journal) (map[forge.Key]news, error) {
	last, err := j.conn.Lasts(ctx, streams.Journal, subjects.EveryJournal)
	if err != nil {
		return nil, err
	}
	found := make(map[forge.Key]news, len(last))
	for _, m := range last {
		key, err := subjects.ParseJournal(m.Subject)
		if err != nil {
			continue // no machine has this journal
		}
		if found[key], err = newsOf(ctx, j, m); err != nil {
			return nil, err
		}
	}
	return found, nil
}
