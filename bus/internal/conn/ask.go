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
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(connection, cancel)()
	return c.NC.RequestMsgWithContext(ctx, m)
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
