package bus

import (
	"time"

	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Ping returns nil when the server answers.
func (b *Bus) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !b.conn.nc.IsConnected() {
		return fmt.Errorf("not connected to a NATS server: %s", b.conn.nc.Status())
	}
	return b.conn.nc.FlushWithContext(ctx)
}

// Prepared returns nil when a runner has made the streams, else ErrNoRunner.
func (b *Bus) Prepared(ctx context.Context) error {
	_, err := b.conn.js.Stream(ctx, streamJournal)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNoRunner
	}
	return err
}

// Close lets what is under way finish and closes the connection. Consumers have
// to be stopped before.
func (b *Bus) Close() {
	if err := b.conn.nc.Drain(); err != nil {
		b.conn.nc.Close()
	}
	select {
	case <-b.conn.closed:
	case <-time.After(requestTimeout):
		b.conn.nc.Close()
		<-b.conn.closed
	}
}

// ErrNoRunner says that no runner has ever worked with a server: its streams are
// missing.
var ErrNoRunner = errors.New("no runner has been here yet: start forge-runner, with this server")
