package bus

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

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

func (c *eventConsumers) bury(ctx context.Context, in input, m jetstream.Msg, reason string) error {
	return c.events.conn.terminate(ctx, in.stream, m, reason)
}
