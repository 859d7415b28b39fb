package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// Send stores what a person asks for, and returns when it is durable. The event's
// Actor is that person. It needs an ID; sending it again changes nothing.
func (b *Bus) Send(ctx context.Context, ev forge.Event) error {
	m, err := b.intentMessage(&ev)
	if err != nil {
		return err
	}
	_, err = b.store(ctx, m)
	return err
}

// Ask is Send, and waits for what a runner decides. When ctx ends first, the
// error is ErrNoRuling: the event is accepted, and is going to be decided.
func (b *Bus) Ask(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	m, err := b.intentMessage(&ev)
	if err != nil {
		return forge.Ruling{}, err
	}
	return b.decided(ctx, m)
}

// decided stores a message and waits for the ruling.
func (b *Bus) decided(ctx context.Context, m *nats.Msg) (forge.Ruling, error) {
	inbox := b.nc.NewInbox()
	sub, err := b.nc.SubscribeSync(inbox)
	if err != nil {
		return forge.Ruling{}, fmt.Errorf("subscribe to the ruling: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	m.Header.Set(headerReply, inbox)
	ack, err := b.store(ctx, m)
	if err != nil {
		return forge.Ruling{}, err
	}
	if ack.Duplicate {
		return forge.Ruling{}, fmt.Errorf("%w: it was sent before", ErrNoRuling)
	}
	reply, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return forge.Ruling{}, fmt.Errorf("%w: %w", ErrNoRuling, err)
	}
	return rulings.Unmarshal(reply.Data)
}

func (b *Bus) intentMessage(ev *forge.Event) (*nats.Msg, error) {
	v := verb(ev)
	if v == "" || ev.ID == "" {
		return nil, errors.New("send event: it needs an id and something that a person can ask for")
	}
	subject, err := personSubject(ev.To, ev.Actor, v)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	data, err := events.Marshal(ev)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	m, err := b.message(subject, data)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	// Senders choose their ids by themselves: two may choose the same one.
	m.Header.Set(jetstream.MsgIDHeader, v+"/"+ev.To.String()+"/"+ev.ID)
	return m, nil
}

// store publishes a message that carries an id until it is durable or ctx ends.
// With the id, trying again cannot store it twice.
func (b *Bus) store(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	for attempt := 0; ; attempt++ {
		ack, err := b.publish(ctx, m)
		var refused *jetstream.APIError
		switch {
		case err == nil:
			ack.Duplicate = ack.Duplicate && attempt == 0 // or it is our own one before
			return ack, nil
		case errors.As(err, &refused) && refused.Code < 500, errors.Is(err, nats.ErrConnectionClosed):
			return nil, err
		}
		b.log.Warn("could not store a message; trying again", "subject", m.Subject, "error", err)
		if sleep(ctx, backoff(attempt)) != nil {
			return nil, err
		}
	}
}

// publish tries once.
func (b *Bus) publish(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ack, err := b.js.PublishMsg(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("publish on %s: %w", m.Subject, err)
	}
	return ack, nil
}
