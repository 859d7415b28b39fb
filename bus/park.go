package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// parkTime is how long a message of a newer version waits for a consumer that
// understands it, until it is offered again.
const parkTime = 30 * time.Second

// unreadable settles a message that is no event, or one of a newer version.
func (c *eventConsumers) unreadable(ctx context.Context, in input, m jetstream.Msg, err error) {
	var unknown *UnknownError
	if errors.As(err, &unknown) && !in.people {
		err = c.events.conn.park(ctx, in.stream, m, err)
	} else {
		d := Delivery{conn: c.events.conn, reply: inboxOnly(m.Headers().Get(headerReply))}
		d.Respond(refusal(err))
		reason := err.Error()
		if err = c.events.submissions.refused(ctx, m, refusalOf(err)); err == nil {
			err = c.bury(ctx, in, m, reason)
		}
	}
	if err != nil {
		c.events.conn.log.Warn("cannot put a message aside; it comes again", "subject", m.Subject(), "error", err)
	}
}

// refusal is what the sender of what cannot be read is told.
func refusal(err error) forge.Ruling {
	r := forge.Ruling{Decision: forge.Refused, Reason: err.Error()}
	if wrong, ok := errors.AsType[*SubmissionError](err); ok {
		r.Field = wrong.Fields[0].Field
	}
	return r
}

// inboxOnly returns a subject that a sender wants to be answered on if it is an inbox,
// or else nothing. What runners may publish, senders may not: an answer on a subject of
// the server's or of ours would be more than an answer.
func inboxOnly(subject string) string {
	if strings.HasPrefix(subject, "_INBOX") {
		return subject
	}
	return ""
}

func (c *eventConsumers) bury(ctx context.Context, in input, m jetstream.Msg, reason string) error {
	return c.events.conn.terminate(ctx, in.stream, m, reason)
}

// terminate copies a message to the dead letters and then ends its delivery.
func (c *Conn) terminate(ctx context.Context, stream string, m jetstream.Msg, reason string) error {
	if err := c.buryMsg(ctx, stream, m, reason); err != nil {
		return err
	}
	return m.TermWithReason(oneLine(reason))
}

// park tells of a message among the dead letters and has it delivered again
// later.
func (c *Conn) park(ctx context.Context, stream string, m jetstream.Msg, reason error) error {
	if err := c.buryMsg(ctx, stream, m, "waits for a newer version: "+reason.Error()); err != nil {
		return err
	}
	return again(m, parkTime)
}

// again has a message delivered again after a while, 0 standing for at once.
func again(m jetstream.Msg, after time.Duration) error {
	if after <= 0 {
		return m.Nak()
	}
	return m.NakWithDelay(after)
}

func (c *Conn) buryMsg(ctx context.Context, stream string, m jetstream.Msg, reason string) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	return c.bury(ctx, stream, stored{Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data()}, reason)
}
