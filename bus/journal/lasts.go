package journal

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// lasts keeps something of the last record of each journal that a filter matches. A
// refresh reads only those anew whose journals have gone on: a project has many more
// intents than change between two looks at it. It is used by one goroutine at a time.
type lasts[T any] struct {
	journal *Journal
	filter  string
	of      func(*forge.Summary) T
	// known has the journals that were read, by their subjects.
	known map[string]lastOf[T]
	// seen is the state of the stream that was read.
	seen jetstream.StreamState
}

// lastOf keeps something of one journal.
type lastOf[T any] struct {
	// records counts the messages of the journal: with another number it is read anew.
	records uint64
	value   T
	// err says why there is no value: conn.ErrNotFound where no record can be
	// read, or a wire.UnknownError where the last one takes a newer version.
	err error
}

// newLasts returns a lasts that knows nothing yet.
func newLasts[T any](j *Journal, filter string, of func(*forge.Summary) T) *lasts[T] {
	return &lasts[T]{journal: j, filter: filter, of: of, known: map[string]lastOf[T]{}}
}

// refresh reads the journals that have changed. Where nothing was written to the stream
// since the last time, it does not even ask which journals there are: that answer is as
// long as the list of all. After an error, some may be read by the next call only.
func (l *lasts[T]) refresh(ctx context.Context) error {
	stream := journalStream(l.filter)
	state, err := l.journal.conn.State(ctx, stream)
	if err != nil {
		return err
	}
	if seen := l.seen; seen.LastSeq == state.LastSeq && seen.Msgs == state.Msgs && seen.FirstSeq == state.FirstSeq {
		return nil
	}
	if taken := state.LastSeq - state.Msgs; state.LastSeq < l.seen.LastSeq || taken != l.seen.LastSeq-l.seen.Msgs {
		// Messages were deleted, or the stream: a journal with as many as
		// before need not be the same.
		clear(l.known)
	}
	counts, err := l.journal.conn.Counts(ctx, stream, l.filter)
	if err != nil {
		return err
	}
	found, err := l.journal.conn.LastsWhere(ctx, stream, l.filter, func(subject string) bool { return counts[subject] != l.known[subject].records })
	if err != nil {
		return err
	}
	for _, m := range found {
		s, err := l.journal.summaryOf(ctx, m)
		_, newer := errors.AsType[*wire.UnknownError](err)
		if err != nil && !newer && !errors.Is(err, conn.ErrNotFound) {
			return err
		}
		one := lastOf[T]{records: counts[m.Subject], err: err}
		if err == nil {
			one.value = l.of(&s)
		}
		l.known[m.Subject] = one
	}
	for subject := range l.known {
		if counts[subject] == 0 {
			delete(l.known, subject)
		}
	}
	l.seen = state
	return nil
}
