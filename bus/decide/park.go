package decide

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/requests"
)

// unreadable settles a message that is no event, or one of a newer version. A
// sender that waits is told why.
func (c *eventConsumers) unreadable(ctx context.Context, in input, m jetstream.Msg, err error) {
	var unknown *wire.UnknownError
	if errors.As(err, &unknown) && !in.people {
		err = c.events.conn.Park(ctx, in.stream, m, err)
	} else {
		d := Delivery{conn: c.events.conn, reply: replyOf(m)}
		d.Respond(ctx, refusal(err))
		reason := err.Error()
		if err = c.events.submissions.PublishRefusal(ctx, m, requests.RefusalOf(err)); err == nil {
			err = c.bury(ctx, in, m, reason)
		}
	}
	if err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot put a message aside; it comes again", "subject", m.Subject(), "error", err)
	}
}

// refusal returns the ruling for the sender of a message that cannot be read.
func refusal(err error) forge.Ruling {
	r := forge.Ruling{Decision: forge.Refused, Reason: err.Error()}
	if wrong, ok := errors.AsType[*requests.SubmissionError](err); ok {
		r.Field = wrong.Fields[0].Field
	}
	return r
}

// bury puts a message among the dead letters, and has the server not deliver it
// again.
func (c *eventConsumers) bury(ctx context.Context, in input, m jetstream.Msg, reason string) error {
	return c.events.conn.Terminate(ctx, in.stream, m, reason)
}
