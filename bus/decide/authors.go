package decide

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/proof"
)

// Permissions say who may publish on a subject. Signatures say who wrote what is there:
// neither a server, nor an account that may publish there, can put anything there that
// the account in the subject has not signed for exactly this subject.

const (
	// keyPause is after how long a message of an unknown key is looked at again, while the
	// file of keys may follow.
	keyPause = time.Second
	// unprovenPause is after how long a worker sends a result again that may be proven then.
	unprovenPause = 5 * time.Second
)

// provenRequest has the author of a stored request proven, and notes signature and way
// in the event. The error is a *signed.Error.
func (c *eventConsumers) provenRequest(m jetstream.Msg, ev *forge.Event) error {
	if c.cfg.Authors == nil {
		ev.Signature = "" // it is not checked
		return nil
	}
	from, err := subjects.ParseIntent(m.Subject())
	if err != nil {
		return err // it was read before
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	author := signed.AuthorOf(from)
	texts := m.Headers()[signed.Header]
	if _, err := c.cfg.Authors.Check(conn.Signable(m.Subject(), m.Headers(), m.Data()), texts, meta.Timestamp, author); err != nil {
		return err
	}
	ev.Via = author.Account
	if author.Namespace != proof.NamespaceRelay { // a runner has put its author's signature into what it stored
		ev.Signature = texts[0] // a proof that was read has this one text
	}
	return nil
}

// unproven settles a request whose author is not proven. While the file of keys may
// follow a new key it comes again; else it is refused, and shown.
func (c *eventConsumers) unproven(ctx context.Context, in input, m jetstream.Msg, err error) {
	meta, metaErr := m.Metadata()
	if e := signed.IsError(err); e != nil && e.Kind == signed.UnknownKey && metaErr == nil && time.Since(meta.Timestamp) < c.cfg.Authors.Settling {
		if err := conn.Again(m, keyPause); err != nil {
			c.events.conn.Log.WarnContext(ctx, "cannot acknowledge an event; it is delivered again", "error", err)
		}
		return
	}
	c.unreadable(ctx, in, m, err)
}

// provenResult has the worker of a result proven: its signature is one of the service
// of the step, over project, intent and step, which the subject names, and over task,
// attempt and claim, which the content does. Whether that attempt was issued, and is
// still open, the rules know.
func (c *eventConsumers) provenResult(m *nats.Msg, ev *forge.Event) error {
	if c.cfg.Authors == nil {
		return nil
	}
	step, _, err := subjects.ParseResult(m.Subject)
	if err != nil {
		return err
	}
	worker := signed.WorkerOf(step)
	texts := m.Header[signed.Header]
	if _, err := c.cfg.Authors.Check(conn.Signable(m.Subject, m.Header, m.Data), texts, time.Now(), worker); err != nil {
		return err
	}
	ev.Signature, ev.Via = texts[0], worker.Account // a proof that was read has this one text
	return nil
}

// unprovenResult settles a result whose worker is not proven, and reports whether it
// has. One that may be proven later, when keys or clocks are mended, is shown, and sent
// again until then: work that was done is not lost.
func (c *eventConsumers) unprovenResult(ctx context.Context, m *nats.Msg, err error) bool {
	var e *signed.Error
	if !errors.As(err, &e) || e.Kind == signed.Forged {
		return false
	}
	id, dead := conn.Unstored(deadResults, m.Subject, m.Data)
	if err := c.events.conn.BuryAs(ctx, id, "", dead, e.Reason); err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot report a result whose worker is not proven", "subject", m.Subject, "error", err)
	}
	c.answer(ctx, m, wire.HeaderAgain, unprovenPause.String())
	return true
}
