package transcripts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Stream appends to and reads what agents and commands did in attempts, line by line.
// What is older than the stream keeps is in the object store.
type Stream struct {
	conn *conn.Conn
}

// New returns the Transcripts of a connection.
func New(c *conn.Conn) *Stream {
	return &Stream{conn: c}
}

// Append stores lines of an attempt's transcript, whole ones, and returns
// when they are durable or ctx ends. With the same id it can be called again.
func (ts *Stream) Append(ctx context.Context, to forge.Key, a forge.Attempt, id string, lines []byte) error {
	subject, err := subjects.Transcript(to, a)
	if err != nil {
		return fmt.Errorf("append to transcript: %w", err)
	}
	m, err := ts.conn.Message(subject, lines)
	if err != nil {
		return fmt.Errorf("append to transcript: %w", err)
	}
	m.Header.Set(jetstream.MsgIDHeader, transcriptID+id)
	_, err = ts.conn.Store(ctx, m)
	return err
}

// Follower is told what is in transcripts, and then what is added. An
// error of either function ends Follow with that error.
type Follower struct {
	// Lines is called with lines as they were appended, in order.
	Lines func(to forge.Key, a forge.Attempt, seq uint64, lines []byte) error
	// Known, if not nil, says of an attempt's lines that were appended under an id that
	// they are known: they are left out.
	Known func(to forge.Key, a forge.Attempt, id string) bool
	// CaughtUp, if not nil, is called once: when the lines that there were at the
	// start have been seen.
	CaughtUp func() error
}

// Follow reads transcripts from a sequence on, or if that is 0 from a
// time on, and goes on live until ctx ends. Then it returns nil. It outlives
// restarts of the server.
func (ts *Stream) Follow(ctx context.Context, like subjects.TranscriptFilter, from uint64, since time.Time, f Follower) error {
	filter, err := subjects.Transcripts(like)
	if err != nil {
		return fmt.Errorf("follow transcripts: %w", err)
	}
	if since.IsZero() {
		from = max(from, 1)
	}
	run := conn.Following{
		Conn: ts.conn, Stream: streams.Transcripts, Filters: []string{filter}, Next: from, Since: since, ReachedEnd: f.CaughtUp,
		Take: func(_ context.Context, m conn.Stored) error {
			to, a, err := subjects.ParseTranscript(m.Subject)
			if err != nil {
				return err
			}
			if f.Known != nil && f.Known(to, a, batchID(m.Header.Get(jetstream.MsgIDHeader))) {
				return nil
			}
			return f.Lines(to, a, m.Seq, m.Data)
		},
	}
	if err := run.Follow(ctx); err != nil {
		return fmt.Errorf("follow transcripts: %w", err)
	}
	return nil
}

// Last returns the last lines that were appended of those that a filter
// matches, and their sequence, 0 if there are none.
func (ts *Stream) Last(ctx context.Context, like subjects.TranscriptFilter) (seq uint64, lines []byte, err error) {
	filter, err := subjects.Transcripts(like)
	if err != nil {
		return 0, nil, fmt.Errorf("look for transcripts: %w", err)
	}
	m, err := ts.conn.Last(ctx, streams.Transcripts, filter)
	if errors.Is(err, conn.ErrNotFound) {
		return 0, nil, nil
	}
	return m.Seq, m.Data, err
}
