package conn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// excerptSize bounds the excerpt of a message in a dead letter, in bytes.
const excerptSize = 1024

// Bury puts a copy of a message's beginning among the dead letters, once.
func (c *Conn) Bury(ctx context.Context, stream string, m Stored, reason string) error {
	return c.BuryAs(ctx, deadID(stream, m), stream, m, reason)
}

// BuryAs is bury for a message that is in no stream, too. The id tells it from
// others.
func (c *Conn) BuryAs(ctx context.Context, id, stream string, m Stored, reason string) error {
	first, err := c.bury(ctx, id, stream, m, reason)
	if first {
		c.Log.ErrorContext(ctx, "cannot handle a message; it is among the dead letters",
			"stream", stream, "seq", m.Seq, "subject", m.Subject, "reason", reason)
	}
	return err
}

// Unstored returns a message that is in no stream, such as a result, as BuryAs takes
// it, with its id: each is among the dead letters once. kind tells the ids of some
// messages from those of others.
func Unstored(kind, subject string, data []byte) (id string, m Stored) {
	sum := sha256.Sum256(append([]byte(subject+"\n"), data...))
	return kind + "/" + hex.EncodeToString(sum[:16]), Stored{Subject: subject, Data: data}
}

// BuryNewer is BuryAs for a message of a newer version, which is offered again until a replica
// understands it: an upgrade that goes on mends that.
func (c *Conn) BuryNewer(ctx context.Context, id, stream string, m Stored, reason error) error {
	first, err := c.bury(ctx, id, stream, m, "waits for a newer version: "+reason.Error())
	if first {
		c.Log.WarnContext(ctx, "a message waits for a newer version; meanwhile it is among the dead letters",
			"stream", stream, "seq", m.Seq, "subject", m.Subject, "reason", reason.Error())
	}
	return err
}

// bury stores a dead letter, and reports whether it is there for the first time.
func (c *Conn) bury(ctx context.Context, id, stream string, m Stored, reason string) (first bool, err error) {
	msg := nats.NewMsg(subjects.Dead(stream, m.Subject))
	msg.Data = m.Data[:min(len(m.Data), excerptSize)]
	msg.Header.Set(jetstream.MsgIDHeader, id)
	msg.Header.Set(wire.HeaderStream, stream)
	msg.Header.Set(wire.HeaderSequence, strconv.FormatUint(m.Seq, 10))
	msg.Header.Set(wire.HeaderSubject, m.Subject)
	msg.Header.Set(wire.HeaderReason, wire.OneLine(reason))
	ack, err := c.Publish(ctx, msg)
	if err != nil {
		return false, err
	}
	return !ack.Duplicate, nil
}

// ParkTime is how long a message of a newer version waits for a consumer that
// understands it, until it is offered again.
const ParkTime = 30 * time.Second

// Terminate copies a message to the dead letters and then ends its delivery.
func (c *Conn) Terminate(ctx context.Context, stream string, m jetstream.Msg, reason string) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	if err := c.Bury(ctx, stream, stored(m, meta), reason); err != nil {
		return err
	}
	return m.TermWithReason(wire.OneLine(reason))
}

// Park tells of a message among the dead letters and has it delivered again
// later.
func (c *Conn) Park(ctx context.Context, stream string, m jetstream.Msg, reason error) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	kept := stored(m, meta)
	if err := c.BuryNewer(ctx, deadID(stream, kept), stream, kept, reason); err != nil {
		return err
	}
	return Again(m, ParkTime)
}

// Again has a message delivered again after a while, 0 standing for at once.
func Again(m jetstream.Msg, after time.Duration) error {
	if after <= 0 {
		return m.Nak()
	}
	return m.NakWithDelay(after)
}

// stored returns a message that a consumer delivered.
func stored(m jetstream.Msg, meta *jetstream.MsgMetadata) Stored {
	return Stored{Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data()}
}

// deadID returns the id of a stream's message among the dead letters.
func deadID(stream string, m Stored) string { return stream + "/" + strconv.FormatUint(m.Seq, 10) }
