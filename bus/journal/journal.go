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
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
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

// Load returns a machine's journal in order, and its head to append to; none and the
// zero head when there is no journal. It sees everything that was appended before it
// was called. Records that are garbage are left out and put among the dead letters,
// one that is set aside (Aside) is left out; one that this version does not understand
// is an *UnknownError, because a decision without it would be wrong. A journal whose
// chain is broken is returned as it is, with the break in its head, and the break is
// put among the dead letters: who only shows it may go on, and who decides may not.
func (j *Journal) Load(ctx context.Context, key forge.Key) ([]forge.Record, chain.Head, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return nil, chain.Head{}, fmt.Errorf("load journal: %w", err)
	}
	newest, err := j.Last(ctx, key)
	if err != nil || newest.Seq == 0 {
		return nil, chain.Head{}, err
	}
	tail, err := j.read(ctx, subject, 0, newest.Seq)
	if err != nil {
		return nil, chain.Head{}, fmt.Errorf("load journal of %s: %w", key, err)
	}
	return tail.Records, tail.Head, nil
}

// After is Load for the messages behind one of them, which has to be there: otherwise the
// tail is the zero one. It reads nothing of what is before that message, but counts it.
func (j *Journal) After(ctx context.Context, key forge.Key, seq uint64) (chain.Tail, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return chain.Tail{}, fmt.Errorf("load journal: %w", err)
	}
	newest, err := j.Last(ctx, key)
	if err != nil || newest.Seq < seq || newest.Seq == 0 {
		return chain.Tail{}, err
	}
	var there map[string]uint64
	if seq > 0 {
		// With this count a reader that starts in the middle notices that a
		// message before its start was removed. It is asked for after the
		// newest message is known, so it includes that one and all before it.
		if there, err = j.conn.Counts(ctx, journalStream(subject), subject); err != nil {
			return chain.Tail{}, fmt.Errorf("count journal of %s: %w", key, err)
		}
	}
	tail, err := j.read(ctx, subject, seq, newest.Seq)
	if err != nil {
		return chain.Tail{}, fmt.Errorf("load journal of %s: %w", key, err)
	}
	tail.Upto = there[subject] - min(tail.Upto, there[subject])
	return tail, nil
}

// errNotThere says that a journal does not have a message.
var errNotThere = errors.New("the journal does not have this message")

// read returns a journal from a message on, 0 standing for the first, and at least up
// to another one. Of the tail, Upto counts those behind the first up to that other one.
func (j *Journal) read(ctx context.Context, subject string, from, upTo uint64) (chain.Tail, error) {
	for attempt := 0; ; attempt++ {
		var tail chain.Tail
		walk := chain.NewWalk(subject)
		late := hold(func(m conn.Stored, by *Aside) error {
			rec, ok, err := j.record(ctx, m, by)
			if err != nil {
				return err
			}
			if from > 0 && tail.At.Seq == 0 {
				if m.Seq != from || by != nil { // what follows from a message that decides nothing is no state
					return errNotThere
				}
				walk = beginTail(&tail, m, &rec, ok)
				return nil
			}
			if tail.Behind++; m.Seq <= upTo {
				tail.Upto++
			}
			if ok {
				tail.Records = append(tail.Records, rec)
			}
			return j.link(ctx, walk, m, &rec, ok)
		})
		last, err := j.conn.EachAfter(ctx, max(from, 1)-1, journalStream(subject), subject, late.next)
		if err == nil {
			err = late.end()
		}
		if errors.Is(err, errNotThere) {
			return chain.Tail{}, nil
		}
		if err != nil {
			return chain.Tail{}, err
		}
		if last >= upTo {
			tail.Head = walk.Head()
			return tail, nil
		}
		if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil { // a replica answered that is behind
			return chain.Tail{}, fmt.Errorf("no replica has message %d: %w", upTo, err)
		}
	}
}

// beginTail takes the message that a tail is behind. It begins the chain with it.
func beginTail(tail *chain.Tail, m conn.Stored, rec *forge.Record, ok bool) *chain.Walk {
	walk := chain.WalkFrom(m.Subject, m.Seq, m.Data)
	if tail.At = walk.Head(); ok {
		tail.Of = rec
	}
	return walk
}

// link takes the next message of a journal into its chain, and puts a break among the dead
// letters, where people and alerts find it. A message that is not ok is no record.
func (j *Journal) link(ctx context.Context, walk *chain.Walk, m conn.Stored, rec *forge.Record, ok bool) error {
	if !ok {
		walk.Other(m.Seq, m.Data)
		return nil
	}
	if found := walk.Record(m.Seq, rec.Previous, m.Data); found != nil {
		return j.bury(ctx, m, found)
	}
	return nil
}

// record reads one message of a journal, which may be set aside. It is not ok when it
// is garbage, or decides nothing because it is set aside, or sets another one aside.
func (j *Journal) record(ctx context.Context, m conn.Stored, by *Aside) (rec forge.Record, ok bool, err error) {
	if by != nil || readAside(m) != nil {
		return rec, false, nil
	}
	rec, err = readRecord(m)
	if _, garbage := errors.AsType[*wire.GarbageError](err); garbage {
		return rec, false, j.bury(ctx, m, err)
	}
	return rec, err == nil, err
}

// readRecord returns a message as a record. The error is a *wire.GarbageError or a
// *wire.UnknownError.
func readRecord(m conn.Stored) (forge.Record, error) {
	rec, err := m.Record()
	if err == nil && len(rec.Events) == 0 { // such as an empty message
		err = wire.Garbage("Record", "holds no event")
	}
	return rec, err
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

// Append adds a record to a machine's journal if after is still its head, and
// returns the new one. It has the record carry the hash of the message before it. With
// ErrConflict the journal went on, and nothing was written. A *TooLargeError was not
// written either, nor anything behind a head that is broken. With
// any other error it is unknown whether the record was written: load again.
func (j *Journal) Append(ctx context.Context, key forge.Key, after chain.Head, rec forge.Record) (chain.Head, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return chain.Head{}, fmt.Errorf("append to journal: %w", err)
	}
	if after.Broken != nil {
		return chain.Head{}, fmt.Errorf("append to journal of %s: %w", key, after.Broken)
	}
	rec.Previous = after.Next(subject).String()
	data, err := wire.Records.Marshal(&rec)
	if err != nil {
		return chain.Head{}, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m, err := j.conn.Message(subject, data)
	if err != nil {
		return chain.Head{}, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(after.Seq))
	m.Header.Set(wire.HeaderKind, wire.KindRecord)
	ack, err := j.conn.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused {
		return chain.Head{}, conn.ErrConflict
	}
	if err != nil {
		return chain.Head{}, fmt.Errorf("append to journal of %s: %w", key, err)
	}
	select {
	case j.conn.Appended <- struct{}{}:
	default:
	}
	return chain.Head{Seq: ack.Sequence, Hash: chain.Of(subject, data)}, nil
}

// Last returns the head to append to, without a look at the chain before it; the zero head
// when there is no journal.
func (j *Journal) Last(ctx context.Context, key forge.Key) (chain.Head, error) {
	subject, err := subjects.Journal(key)
	if err != nil {
		return chain.Head{}, fmt.Errorf("read last record: %w", err)
	}
	m, err := j.conn.Last(ctx, journalStream(subject), subject)
	if errors.Is(err, conn.ErrNotFound) {
		return chain.Head{}, nil
	}
	if err != nil {
		return chain.Head{}, err
	}
	return chain.Head{Seq: m.Seq, Hash: chain.Of(subject, m.Data)}, nil
}
