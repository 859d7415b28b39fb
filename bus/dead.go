package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// DeadLetter is a message that could not be handled.
type DeadLetter struct {
	// Stream is where the message was; empty for a result, which is in none.
	Stream string
	// Seq is the message's sequence in the stream, in which it may still be.
	Seq uint64
	// Subject is the message's own; empty if only the server reported it.
	Subject string
	// Reason says why it could not be handled, and At when it was put aside.
	Reason string
	At     time.Time
	// Excerpt is the beginning of the message; empty if only the server
	// reported it.
	Excerpt []byte
}

// Dead returns the dead letters, the oldest first: for a person those of the project.
func (b *Bus) Dead(ctx context.Context) ([]DeadLetter, error) {
	return b.deadAfter(ctx, 0)
}

// deadAfter returns the dead letters after a sequence of their stream.
func (b *Bus) deadAfter(ctx context.Context, seq uint64) ([]DeadLetter, error) {
	type place struct {
		stream string
		seq    uint64
	}
	var list []DeadLetter
	known := map[place]int{}
	// The server's advisory and our own copy are about the same message.
	filter := ">"
	if project := b.conn.Project(); project != "" {
		var err error
		if filter, err = subjects.DeadIn(project); err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
	}
	_, err := b.conn.EachAfter(ctx, seq, streams.Dead, filter, func(m conn.Stored) error {
		d, err := readDead(m)
		if err != nil {
			b.conn.Log.WarnContext(ctx, "cannot read a dead letter", "subject", m.Subject, "error", err)
			return nil
		}
		if d.withdrawn() {
			return nil
		}
		p := place{d.Stream, d.Seq}
		i, ok := known[p]
		switch {
		case d.Stream == "":
			list = append(list, d)
		case !ok:
			known[p] = len(list)
			list = append(list, d)
		case list[i].Subject == "":
			list[i] = d
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

// DeadCount remembers how many dead letters there were. The zero value knows nothing.
type DeadCount struct {
	first, last, messages uint64
	count                 int
}

// maxCounted bounds how many messages CountDead reads: whoever can send garbage can make any
// number of dead letters.
const maxCounted = 1000

// CountDead returns how many dead letters there are among the newest 1,000 messages of their
// stream. It reads them only if there are others than at the last call with the same known.
func (b *Bus) CountDead(ctx context.Context, known *DeadCount) (int, error) {
	state, err := b.conn.State(ctx, streams.Dead)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	if state.FirstSeq == known.first && state.LastSeq == known.last && state.Msgs == known.messages {
		return known.count, nil
	}
	list, err := b.deadAfter(ctx, max(state.LastSeq, maxCounted)-maxCounted)
	if err != nil {
		return 0, err
	}
	*known = DeadCount{first: state.FirstSeq, last: state.LastSeq, messages: state.Msgs, count: len(list)}
	return known.count, nil
}

// withdrawn reports whether it is only a command that was taken back while a worker
// was at it, as when its intent is cancelled.
func (d *DeadLetter) withdrawn() bool {
	return d.Stream == streams.Commands && d.Reason == "Unacknowledged message was deleted"
}

// readDead reads a dead letter of ours, or an advisory of the server about one.
func readDead(m conn.Stored) (DeadLetter, error) {
	at, err := m.At()
	if err != nil {
		return DeadLetter{}, err
	}
	if reason := m.Header.Get(wire.HeaderReason); reason != "" {
		seq, err := strconv.ParseUint(m.Header.Get(wire.HeaderSequence), 10, 64)
		return DeadLetter{
			Stream: m.Header.Get(wire.HeaderStream), Seq: seq, Subject: m.Header.Get(wire.HeaderSubject),
			Reason: reason, At: at, Excerpt: m.Data,
		}, err
	}
	var advisory struct {
		Stream     string `json:"stream"`
		Seq        uint64 `json:"stream_seq"`
		Reason     string `json:"reason"`
		Deliveries int    `json:"deliveries"`
	}
	if err := json.Unmarshal(m.Data, &advisory); err != nil {
		return DeadLetter{}, err
	}
	if advisory.Reason == "" {
		advisory.Reason = fmt.Sprintf("given up after %d deliveries", advisory.Deliveries)
	}
	return DeadLetter{Stream: advisory.Stream, Seq: advisory.Seq, Reason: advisory.Reason, At: at}, nil
}
