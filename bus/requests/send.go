package requests

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/messages"
)

// Submissions carries requests of people and other systems to the runners. It
// is safe for concurrent use.
type Submissions struct {
	conn    *conn.Conn
	journal *journal.Journal
}

// NewSubmissions returns the Submissions of a connection.
func NewSubmissions(c *conn.Conn, j *journal.Journal) *Submissions {
	return &Submissions{conn: c, journal: j}
}

// Send stores the event of a person, and returns when it is durable. The event's
// Actor is that person, and its Via the gateway through which they ask, if they do. It
// needs an ID; sending it again changes nothing.
func (ss *Submissions) Send(ctx context.Context, ev forge.Event) error {
	m, err := ss.intentMessage(&ev)
	if err != nil {
		return err
	}
	_, err = ss.store(ctx, m)
	return err
}

// Ask is Send, and waits for the ruling of a runner. When ctx ends first, or
// the same event was sent before, the error is ErrNoRuling: the event is
// accepted, and is going to be decided.
func (ss *Submissions) Ask(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	m, err := ss.intentMessage(&ev)
	if err != nil {
		return forge.Ruling{}, err
	}
	return ss.decided(ctx, m)
}

// decided stores a message and waits for the ruling, which a runner sends to an
// inbox that the message names.
func (ss *Submissions) decided(ctx context.Context, m *nats.Msg) (forge.Ruling, error) {
	inbox := ss.conn.NC.NewInbox()
	sub, err := ss.conn.NC.SubscribeSync(inbox)
	if err != nil {
		return forge.Ruling{}, fmt.Errorf("subscribe to the ruling: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	m.Header.Set(wire.HeaderReply, inbox)
	ack, err := ss.store(ctx, m)
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
	ss.conn.Signer.Answered(reply.Header)
	return wire.Rulings.Unmarshal(reply.Data)
}

// store signs a message, and returns when it is durable.
func (ss *Submissions) store(ctx context.Context, m *nats.Msg) (*jetstream.PubAck, error) {
	answered, err := ss.conn.Signer.Sign(m, false)
	if err != nil {
		return nil, err
	}
	defer answered()
	return ss.conn.Store(ctx, m)
}

// intentMessage returns a person's event as a message on that person's own
// subject.
func (ss *Submissions) intentMessage(ev *forge.Event) (*nats.Msg, error) {
	v := messages.Verb(ev.Message)
	if v == "" || ev.ID == "" {
		return nil, errors.New("send event: it needs an id and something that a person can ask for")
	}
	subject, err := subjects.Personal(ev.To, ev.Actor, v)
	if ev.Via != "" {
		subject, err = subjects.PersonalVia(ev.To, ev.Actor, ev.Via, v)
	}
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	sent := *ev
	sent.Via = "" // the subject says it
	data, err := wire.Events.Marshal(&sent)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	m, err := ss.conn.Message(subject, data)
	if err != nil {
		return nil, fmt.Errorf("send event: %w", err)
	}
	// Senders choose their ids by themselves: two may choose the same one.
	m.Header.Set(jetstream.MsgIDHeader, v+"/"+ev.To.String()+"/"+ev.ID)
	return m, nil
}

// ErrNoRuling says that an event is stored, but no runner has decided on it yet;
// it is decided when a runner gets to it.
var ErrNoRuling = errors.New("stored; no runner has decided on it yet")
