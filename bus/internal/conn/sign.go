package conn

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
)

// Signable returns a message as its author signs it, and as a receiver compares it with its signature.
func Signable(subject string, header nats.Header, data []byte) *signed.Message {
	return &signed.Message{Subject: subject, ID: header.Get(jetstream.MsgIDHeader), ContentType: header.Get(wire.HeaderContentType), Payload: data}
}

// Sign signs a message by the key of this account; without a key the message stays unsigned. What is signed must not change
// afterwards: the subject, the id, the content type and the content.
func (c *Conn) Sign(m *nats.Msg) error {
	key, err := c.Key.Key()
	if err != nil {
		return fmt.Errorf("sign a message for %s: %w", m.Subject, err)
	}
	if key == nil {
		return nil
	}
	p, err := signed.Sign(key, Signable(m.Subject, m.Header, m.Data), time.Now())
	if err != nil {
		return fmt.Errorf("sign a message for %s: %w", m.Subject, err)
	}
	m.Header.Set(signed.Header, p.String())
	return nil
}
