package conn

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/proof"
)

// Signable returns a message as its author signs it, and as a receiver compares it
// with its signature.
func Signable(subject string, header nats.Header, data []byte) *signed.Message {
	return &signed.Message{Subject: subject, ID: header.Get(jetstream.MsgIDHeader), ContentType: header.Get(wire.HeaderContentType), Payload: data}
}

// Signer signs messages by the key of the account.
type Signer struct {
	// Key is asked for each signature; nil: messages stay unsigned.
	Key proof.Source
}

// Sign signs a message. Its subject, id, content type and content must not change
// afterwards.
func (s Signer) Sign(m *nats.Msg) error {
	key, err := s.Key.Key()
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
