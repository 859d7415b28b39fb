package conn

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// answerTimeout is how long the first answer may take. Under load the next ones may
// take longer.
const answerTimeout = 5 * time.Second

// Ask sends a request and returns its answer. It waits for a connection, and fails
// when that is lost, since the answer may be lost with it.
func (c *Conn) Ask(ctx context.Context, m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	connection := c.connection.Load()
	if !c.NC.IsConnected() {
		select {
		case <-connection.Done():
			connection = c.connection.Load()
		case <-c.Closed:
			return nil, nats.ErrConnectionClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	ctx, cancel := connection.answer(ctx, timeout)
	defer cancel()
	return c.NC.RequestMsgWithContext(ctx, m)
}

// Awaiting returns a context in which the answer of a request is waited for that is sent now. It
// ends after timeout, and as soon as the bus has connected anew: the answer may be lost with
// the connection before. What was asked for may have been done all the same.
func Awaiting(ctx context.Context, c *Conn, timeout time.Duration) (context.Context, context.CancelFunc) {
	return c.connection.Load().answer(ctx, timeout)
}

func (c *connection) answer(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	stop := context.AfterFunc(c, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// connection ends when the bus has connected anew.
type connection struct {
	context.Context //nolint:containedctx // its end is all that it is
	end             context.CancelFunc
}

// newConnection returns a connection that has just begun.
func newConnection() *connection {
	ctx, cancel := context.WithCancel(context.Background())
	return &connection{ctx, cancel}
}

// Reconnected begins a new connection and ends the one before. What was denied may be
// permitted now.
func (c *Conn) Reconnected() {
	c.denials.mu.Lock()
	c.denials.inbox = ""
	c.denials.mu.Unlock()
	c.connection.Swap(newConnection()).end()
}
