package conn

import (
	"context"
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
	return c.BuryAs(ctx, stream+"/"+strconv.FormatUint(m.Seq, 10), stream, m, reason)
}

// BuryAs is bury for a message that is in no stream, too. The id tells it from
// others.
func (c *Conn) BuryAs(ctx context.Context, id, stream string, m Stored, reason string) error {
	msg := nats.NewMsg(subjects.Dead(stream))
	msg.Data = m.Data[:min(len(m.Data), excerptSize)]
	msg.Header.Set(jetstream.MsgIDHeader, id)
	msg.Header.Set(wire.HeaderStream, stream)
	msg.Header.Set(wire.HeaderSequence, strconv.FormatUint(m.Seq, 10))
	msg.Header.Set(wire.HeaderSubject, m.Subject)
	msg.Header.Set(wire.HeaderReason, wire.OneLine(reason))
	ack, err := c.Publish(ctx, msg)
	if err != nil {
		return err
	}
	if !ack.Duplicate {
		c.Log.Error("cannot handle a message; it is among the dead letters",
			"stream", stream, "seq", m.Seq, "subject", m.Subject, "reason", reason)
	}
	return nil
}

// ParkTime is how long a message of a newer version waits for a consumer that
// understands it, until it is offered again.
const ParkTime = 30 * time.Second

// Terminate copies a message to the dead letters and then ends its delivery.
func (c *Conn) Terminate(ctx context.Context, stream string, m jetstream.Msg, reason string) error {
	if err := c.buryMsg(ctx, stream, m, reason); err != nil {
		return err
	}
	return m.TermWithReason(wire.OneLine(reason))
}

// Park tells of a message among the dead letters and has it delivered again
// later.
func (c *Conn) Park(ctx context.Context, stream string, m jetstream.Msg, reason error) error {
	if err := c.buryMsg(ctx, stream, m, "waits for a newer version: "+reason.Error()); err != nil {
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

// buryMsg is Bury for a message that a consumer delivered.
func (c *Conn) buryMsg(ctx context.Context, stream string, m jetstream.Msg, reason string) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	return c.Bury(ctx, stream, Stored{Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data()}, reason)
}
