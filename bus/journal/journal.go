package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Journal reads and appends to the journals of machines: every decision, in order, is a
// record, and everything else follows from the records.
type Journal struct {
	conn *conn.Conn
}

// New returns the Journal of a connection.
func New(c *conn.Conn) *Journal {
	return &Journal{conn: c}
}

// journalStream is the stream that a journal's subject, or a filter of such, is of.
func journalStream(subject string) string {
	if strings.HasPrefix(subject, "forge.project.") {
		return streams.Projects
	}
	return streams.Journal
}

// Load returns a machine's journal in order, and the sequence to append after;
// none and 0 when there is no journal. It sees everything that was appended
// before it was called. Records that are garbage are left out and put among the
// dead letters; one that this version does not understand is an *UnknownError,
// because a decision without it would be wrong.
func (j *Journal) Load(ctx context.Context, key forge.Key) ([]forge.Record, uint64, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return nil, 0, fmt.Errorf("load journal: %w", err)
	}
	newest, err := j.Last(ctx, key)
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	for attempt := 0; ; attempt++ {
		var list []forge.Record
		last, err := j.conn.Each(ctx, journalStream(subject), subject, func(m conn.Stored) error {
			rec, ok, err := j.record(ctx, m)
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
		if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil { // a replica answered that is behind
			return nil, 0, fmt.Errorf("load journal of %s: no replica has message %d: %w", key, newest, err)
		}
	}
}

// record reads one message of a journal. It is not ok when it is garbage.
func (j *Journal) record(ctx context.Context, m conn.Stored) (rec forge.Record, ok bool, err error) {
	rec, err = m.Record()
	if err == nil && len(rec.Events) == 0 { // such as an empty message
		err = wire.Garbage("Record", "holds no event")
	}
	if _, ok := errors.AsType[*wire.GarbageError](err); !ok {
		return rec, err == nil, err
	}
	return rec, false, j.bury(ctx, m, err)
}

// bury puts garbage among the dead letters. Whoever may only read goes on without that: a
// runner comes by as well.
func (j *Journal) bury(ctx context.Context, m conn.Stored, reason error) error {
	err := j.conn.Bury(ctx, journalStream(m.Subject), m, reason.Error())
	if errors.Is(err, conn.ErrNotAllowed) {
		return nil
	}
	return err
}

// Append adds a record to a machine's journal if expected is still its last
// sequence, 0 standing for none, and returns the new one. With ErrConflict it
// was not, and nothing was written. A *TooLargeError was not written either. With
// any other error it is unknown whether the record was written: load again.
func (j *Journal) Append(ctx context.Context, key forge.Key, expected uint64, rec forge.Record) (uint64, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return 0, fmt.Errorf("append to journal: %w", err)
	}
	data, err := wire.Records.Marshal(&rec)
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m, err := j.conn.Message(subject, data)
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(expected))
	ack, err := j.conn.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused {
		return 0, conn.ErrConflict
	}
	if err != nil {
		return 0, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	select {
	case j.conn.Appended <- struct{}{}:
	default:
	}
	return ack.Sequence, nil
}

// Last returns the sequence to append after; 0 when there is no journal.
func (j *Journal) Last(ctx context.Context, key forge.Key) (uint64, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return 0, fmt.Errorf("read last record: %w", err)
	}
	m, err := j.conn.Last(ctx, journalStream(subject), subject)
	if errors.Is(err, conn.ErrNotFound) {
		return 0, nil
	}
	return m.Seq, err
}
