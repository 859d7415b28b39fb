package conn

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Store publishes a message that carries an id until it is durable or ctx ends.
// With the id, trying again cannot store it twice. The acknowledgement says
// Duplicate only if another call stored it.
func (c *Conn) Store(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	for attempt := 0; ; attempt++ {
		ack, err := c.Publish(ctx, m)
		var refused *jetstream.APIError
		switch {
		case err == nil:
			ack.Duplicate = ack.Duplicate && attempt == 0 // or it is our own one before
			return ack, nil
		case errors.As(err, &refused) && refused.Code < 500, errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, ErrNotAllowed):
			return nil, err
		}
		c.Log.WarnContext(ctx, "could not store a message; trying again", "subject", m.Subject, "error", err)
		if Sleep(ctx, Backoff(attempt)) != nil {
			return nil, err
		}
	}
}

// Publish publishes a message once, and waits until it is stored.
func (c *Conn) Publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := Awaiting(ctx, c, RequestTimeout)
	defer cancel()
	var ack *jetstream.PubAck
	err := c.Permitted(ctx, m.Subject, func(ctx context.Context) (err error) {
		ack, err = c.JS.PublishMsg(ctx, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("publish on %s: %w", m.Subject, err)
	}
	return ack, nil
}
