package bus

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// requestTimeout bounds one round trip to the server. Callers that pass a
// context with a later deadline wait longer by trying again.
const requestTimeout = 5 * time.Second

// Conn is the connection that the doors of a bus share.
type Conn struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	log      *slog.Logger
	replicas int
	changed  chan struct{} // holds an element after a reconnect, for Guard
	appended chan struct{} // holds an element after a journal went on, for Changes.Publish
	closed   chan struct{}

	connection atomic.Pointer[connection] // the present one

	answerTimeout time.Duration // see there
}

// newConn returns what is to be connected. A nil logger logs nothing.
func newConn(log *slog.Logger, replicas int) *Conn {
	c := &Conn{
		log: log, replicas: replicas,
		changed: make(chan struct{}, 1), appended: make(chan struct{}, 1), closed: make(chan struct{}),
		answerTimeout: answerTimeout,
	}
	c.connection.Store(newConnection())
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// poke asks Guard to look at once.
func (c *Conn) poke() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// backoff is how long to wait after a number of failures: 20 ms, then longer,
// up to 2 s.
func backoff(failures int) time.Duration {
	return min(20*time.Millisecond<<min(failures, 10), 2*time.Second)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
