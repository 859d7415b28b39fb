package conn

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/internal/alive"
)

// RequestTimeout bounds one round trip to the server. Callers that pass a
// context with a later deadline wait longer by trying again.
const RequestTimeout = 5 * time.Second

// Conn is the connection that the doors of a bus share.
type Conn struct {
	NC       *nats.Conn
	JS       jetstream.JetStream
	Log      *slog.Logger
	Replicas int
	// Alive watches the loops that use the connection; nil: nothing does.
	Alive *alive.Watch
	// Changed holds an element after a reconnect, for Guard.
	Changed chan struct{}
	// Appended holds an element after a journal of this process went on, for
	// the publishing of changes.
	Appended chan struct{}
	Closed   chan struct{}
	// Signer signs the requests and results of this account.
	Signer Signer
	// Singly says that this account reads stored messages one by one: it has no
	// right to direct gets.
	Singly bool

	// connection is the present one; it changes with every reconnect.
	connection atomic.Pointer[connection]
	// person is nil where this account reads streams itself.
	person *person
	// denials are the calls that wait for an answer, and would be told of a right that is
	// missing.
	denials denials

	AnswerTimeout time.Duration // see there
}

// New returns a Conn that is not connected yet. A nil logger logs nothing.
func New(log *slog.Logger, replicas int) *Conn {
	c := &Conn{
		Log: log, Replicas: replicas,
		Changed: make(chan struct{}, 1), Appended: make(chan struct{}, 1), Closed: make(chan struct{}),
		AnswerTimeout: answerTimeout,
	}
	c.connection.Store(newConnection())
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Poke asks Guard to look at once.
func (c *Conn) Poke() {
	select {
	case c.Changed <- struct{}{}:
	default:
	}
}

// Backoff is how long to wait after a number of failures: 20 ms, then longer,
// up to 2 s.
func Backoff(failures int) time.Duration {
	return min(20*time.Millisecond<<min(failures, 10), 2*time.Second)
}

// Sleep returns after a while, or with the error of ctx when that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
