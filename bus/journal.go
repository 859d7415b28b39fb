package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// journalStream is the stream that a journal's subject, or a filter of such, is of.
func journalStream(subject string) string {
	if strings.HasPrefix(subject, "forge.project.") {
		return streamProjects
	}
	return streamJournal
}

// Load returns a machine's journal in order, and the sequence to append after;
// none and 0 when there is no journal. It sees everything that was appended
// before it was called. Records that are garbage are left out and put among the
// dead letters; one that this version does not understand is an *UnknownError,
// because a decision without it would be wrong.
func (b *Bus) Load(ctx context.Context, key forge.Key) ([]forge.Record, uint64, error) {
	subject, err := journalSubject(key)
	if err != nil {
		return nil, 0, fmt.Errorf("load journal: %w", err)
	}
	newest, err := b.Last(ctx, key)
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	for attempt := 0; ; attempt++ {
		var list []forge.Record
		last, err := b.each(ctx, journalStream(subject), subject, func(m stored) error {
			rec, ok, err := b.record(ctx, m)
			if ok {
				list = append(list, rec)
			}
			return err
		})
		if err != nil {
			return nil, 0, fmt.Errorf("load journal of %s: %w", key, err)
		}
		if last >= newest {
			return list, last, nil
		}
		if err := sleep(ctx, backoff(attempt)); err != nil { // a replica answered that is behind
			return nil, 0, fmt.Errorf("load journal of %s: no replica has message %d: %w", key, newest, err)
		}
	}
}

// record reads one message of a journal. It is not ok when it is garbage.
func (b *Bus) record(ctx context.Context, m stored) (rec forge.Record, ok bool, err error) {
	rec, err = records.Unmarshal(m.Data)
	if err == nil && len(rec.Events) == 0 { // such as an empty message
		err = garbage("Record", "holds no event")
	}
	if _, ok := errors.AsType[*GarbageError](err); !ok {
		return rec, err == nil, err
	}
	return rec, false, b.bury(ctx, journalStream(m.Subject), m, err.Error())
}

// Append adds a record to a machine's journal if expected is still its last
// sequence, 0 standing for none, and returns the new one. With ErrConflict it
// was not, and nothing was written. A *TooLargeError was not written either. With
// any other error it is unknown whether the record was written: load again.
func (b *Bus) Append(ctx context.Context, key forge.Key, expected uint64, rec forge.Record) (uint64, error) {
	subject, err := journalSubject(key)
	if err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	data, err := records.Marshal(&rec)
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m, err := b.message(subject, data)
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(expected))
	ack, err := b.publish(ctx, m)
	if refused, _ := wrongSequence(err); refused {
		return 0, ErrConflict
	}
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	select {
	case b.appended <- struct{}{}:
	default:
	}
	return ack.Sequence, nil
}

// Last returns the sequence to append after; 0 when there is no journal.
func (b *Bus) Last(ctx context.Context, key forge.Key) (uint64, error) {
	subject, err := journalSubject(key)
	if err != nil {
		return 0, fmt.Errorf("read last record: %w", err)
	}
	m, err := b.last(ctx, journalStream(subject), subject)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return m.Seq, err
}
