package transcripts

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// readBytes bounds the messages that the server sends for one request of ReadFrom, about, in
// bytes. Whoever reads a page has no use for more, and what was sent in vain waits in memory.
const readBytes = 512 << 10

// errEnough ends reading without an error.
var errEnough = errors.New("enough")

// ReadFrom calls do with the stored lines of an attempt, of all its claims, from a sequence on
// and in order, until do returns false or has everything that was appended before the call. It
// holds no more than one batch at a time. People have no right to it.
func (ts *Stream) ReadFrom(ctx context.Context, to forge.Key, a forge.Attempt, from uint64, do func(Batch) bool) error {
	filter, err := attemptFilter(to, a)
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	newest, err := ts.conn.Last(ctx, streams.Transcripts, filter)
	if errors.Is(err, conn.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read transcript: %w", err)
	}
	for attempt := 0; from <= newest.Seq; attempt++ {
		var got conn.Answer
		err := conn.Patiently(ctx, func(ctx context.Context) (err error) {
			q := &conn.Query{Seq: max(from, 1), Batch: conn.BatchSize, MaxBytes: readBytes, Next: filter}
			got, err = ts.conn.Get(ctx, streams.Transcripts, q, func(m conn.Stored) error {
				at, err := m.At()
				if err == nil && !do(Batch{batchID(m.Header.Get(jetstream.MsgIDHeader)), m.Seq, at, m.Data}) {
					err = errEnough
				}
				from = m.Seq + 1
				return err
			})
			return err
		})
		switch {
		case errors.Is(err, errEnough):
			return nil
		case err != nil:
			return fmt.Errorf("read transcript: %w", err)
		case got.More, from > newest.Seq:
			attempt = 0
			continue
		}
		if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil { // a replica answered that is behind
			return fmt.Errorf("read transcript: no replica has message %d: %w", newest.Seq, err)
		}
	}
	return nil
}
