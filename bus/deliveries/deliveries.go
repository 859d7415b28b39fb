package deliveries

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Delivery is one message of a forge, a chat or another system to the gateway.
type Delivery struct {
	// Hook is the name of the door that it came through, an id as a project's.
	Hook string
	// ID is the sender's own id of it.
	ID string
	// Event is the sender's word for what happened; empty if there is none.
	Event string
	// ContentType is that of the body.
	ContentType string
	// Body has the bytes that were signed.
	Body []byte
	// Seq is its place in the stream, and At when it was stored. Store does not read them.
	Seq uint64
	At  time.Time
}

// ErrForm says that a text of a delivery cannot stand in a header, by its length or its characters.
var ErrForm = errors.New("store delivery: it has a text that is too long, or not of printable ASCII")

// The headers of a stored delivery.
const (
	headerID    = "Forge-Delivery"
	headerEvent = "Forge-Delivery-Event"
	headerType  = "Content-Type"
)

// Stream stores deliveries and reads them. It is safe for concurrent use.
type Stream struct {
	conn *conn.Conn
}

// New returns the Stream of a connection.
func New(c *conn.Conn) *Stream {
	return &Stream{conn: c}
}

// Store stores a delivery, and returns when it is durable. known says that it was
// there before. Errors: ErrForm, a *bus.TooLargeError, and those of the server.
func (s *Stream) Store(ctx context.Context, d Delivery) (known bool, err error) {
	if d.ID == "" {
		return false, errors.New("store delivery: it has no id")
	}
	for _, text := range []string{d.ID, d.Event, d.ContentType} {
		if !printable(text) {
			return false, fmt.Errorf("%w: %.100q", ErrForm, text)
		}
	}
	subject, err := d.subject()
	if err != nil {
		return false, fmt.Errorf("store delivery: %w", err)
	}
	m, err := s.conn.Message(subject, d.Body)
	if err != nil {
		return false, err
	}
	m.Header = nats.Header{headerID: {d.ID}, headerEvent: {d.Event}, headerType: {d.ContentType}}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0") // a subject is one delivery
	_, err = s.conn.Store(ctx, m)
	if refused, settled := conn.WrongSequence(err); refused {
		if !settled { // another request with the same delivery is being stored, and may yet fail
			return false, fmt.Errorf("store delivery: it is being stored: %w", err)
		}
		return true, nil
	}
	return false, err
}

// subject returns where a delivery is stored.
func (d *Delivery) subject() (string, error) {
	sum := sha256.Sum256([]byte(d.ID))
	return subjects.Delivery(d.Hook, hex.EncodeToString(sum[:16]))
}

// maxText bounds the texts of a delivery besides its body, in bytes.
const maxText = 200

// printable reports whether a text can be the value of a header: ASCII without
// control characters, so that it begins no header of its own.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) <= maxText
}

// After calls take with all deliveries after a place in the stream, in their
// order, and returns the last place. An error of take ends it.
func (s *Stream) After(ctx context.Context, seq uint64, take func(Delivery) error) (last uint64, err error) {
	return s.conn.EachAfter(ctx, seq, streams.Hooks, subjects.EveryDelivery, func(m conn.Stored) error {
		hook, err := subjects.ParseDelivery(m.Subject)
		if err != nil {
			return err
		}
		at, err := m.At()
		if err != nil {
			return err
		}
		return take(Delivery{
			Hook: hook, ID: m.Header.Get(headerID), Event: m.Header.Get(headerEvent), ContentType: m.Header.Get(headerType),
			Body: m.Data, Seq: m.Seq, At: at,
		})
	})
}

// Bury puts a delivery that leads to nothing among the dead letters, where pfl-forge doctor
// shows it with the reason. subject is the one that it would have been handed on by, whose
// project it stands under; empty if that is not known. Doing so again changes nothing.
func (s *Stream) Bury(ctx context.Context, d Delivery, subject, reason string) error {
	own, err := d.subject()
	if err != nil {
		return fmt.Errorf("bury delivery: %w", err)
	}
	subject = cmp.Or(subject, own)
	return s.conn.Bury(ctx, streams.Hooks, conn.Stored{Subject: subject, Seq: d.Seq, Data: d.Body}, reason)
}

// OnDelivery calls do when a delivery may have been stored, by this process or
// another one, from when it returns until ctx ends. A call can be missed: who
// has to know of all deliveries asks After now and then.
func (s *Stream) OnDelivery(ctx context.Context, do func()) error {
	sub, err := s.conn.NC.Subscribe(subjects.EveryDelivery, func(*nats.Msg) { do() })
	if err != nil {
		return fmt.Errorf("subscribe to deliveries: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	flush, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	if err := s.conn.NC.FlushWithContext(flush); err != nil {
		_ = sub.Unsubscribe()
		return fmt.Errorf("subscribe to deliveries: %w", err)
	}
	return nil
}
