package intakes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Count is one key that an entry counts under, with the dollars that it counts for there.
type Count struct {
	Key string  `json:"key"`
	USD float64 `json:"usd,omitempty"`
}

// Entry says that one event of a forge takes a place in limits. It is stored
// before the intent of the event is submitted.
type Entry struct {
	// Event is the origin's event id of the intent. Several entries of one
	// event count once under each key.
	Event string `json:"event"`
	// Counts are all keys that it counts under.
	Counts []Count `json:"counts"`
	// Seq is its place in the stream, and At the server's time when it stored
	// the entry. Add does not read them.
	Seq uint64    `json:"-"`
	At  time.Time `json:"-"`
}

// ErrBehind says that another entry was stored after the last one that the caller has read.
var ErrBehind = errors.New("store an entry of intake: another gateway stored one meanwhile")

// Stream stores entries and reads them. It is safe for concurrent use.
type Stream struct {
	conn *conn.Conn
}

// New returns the Stream of a connection.
func New(c *conn.Conn) *Stream { return &Stream{conn: c} }

// Add stores an entry of a forge, and returns its place when it is durable. last is that of the
// last entry that the caller has read of the forge; 0 if there was none. Errors: ErrBehind if
// there is another one, and those of the server, which stores no more when the stream is full.
func (s *Stream) Add(ctx context.Context, forgeName string, e Entry, last uint64) (seq uint64, err error) {
	subject, err := subjects.Intake(forgeName)
	if err != nil {
		return 0, fmt.Errorf("store an entry of intake: %w", err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return 0, fmt.Errorf("store an entry of intake: %w", err)
	}
	m, err := s.conn.Message(subject, data)
	if err != nil {
		return 0, err
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last, 10))
	// Once: who waits for it holds up all other issues of the forge, and asks again in a while.
	ack, err := s.conn.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused {
		return 0, ErrBehind
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// After calls take with all entries of a forge after a place in the stream, in their
// order. It asks the stream's leader: what was acknowledged is seen. An error of take
// ends it; so does an entry that cannot be read, since it would count for nothing.
func (s *Stream) After(ctx context.Context, forgeName string, seq uint64, take func(Entry) error) error {
	subject, err := subjects.Intake(forgeName)
	if err != nil {
		return fmt.Errorf("read entries of intake: %w", err)
	}
	for {
		m, err := conn.Next(ctx, s.conn, streams.Intake, subject, seq)
		if errors.Is(err, conn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var e Entry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return fmt.Errorf("read entry %d of intake: %w", m.Seq, err)
		}
		if e.At, err = m.At(); err != nil {
			return fmt.Errorf("read entry %d of intake: %w", m.Seq, err)
		}
		e.Seq, seq = m.Seq, m.Seq
		if err := take(e); err != nil {
			return err
		}
	}
}
