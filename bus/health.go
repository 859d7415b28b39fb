package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

// Ping returns nil when the server answers.
func (b *Bus) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	if !b.conn.NC.IsConnected() {
		return fmt.Errorf("not connected to a NATS server: %s", b.conn.NC.Status())
	}
	return b.conn.NC.FlushWithContext(ctx)
}

// Certificate returns the certificate that the server has shown; nil where the
// connection is not encrypted.
func (b *Bus) Certificate() *x509.Certificate {
	state, err := b.conn.NC.TLSConnectionState()
	if err != nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}

// Prepared returns nil when a runner has made the streams, else ErrNoRunner. With
// requests.ErrNotAllowed this account may not even look. A person learns only from a runner
// that is up whether there is one: that none is, is no error, since events wait for it.
func (b *Bus) Prepared(ctx context.Context) error {
	if b.conn.Project() != "" {
		if _, err := b.conn.Idle(ctx); errors.Is(err, conn.ErrNotAllowed) {
			return err
		}
		return nil
	}
	err := b.conn.Permitted(ctx, "$JS.API.STREAM.INFO."+streams.Journal, func(ctx context.Context) error {
		_, err := b.conn.JS.Stream(ctx, streams.Journal)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNoRunner
	}
	return err
}

// Close closes the connection when calls under way have finished. Consumers have
// to be stopped before.
func (b *Bus) Close() {
	if err := b.conn.NC.Drain(); err != nil {
		b.conn.NC.Close()
	}
	select {
	case <-b.conn.Closed:
	case <-time.After(conn.RequestTimeout):
		b.conn.NC.Close()
		<-b.conn.Closed
	}
}

// ErrNoRunner says that no runner has ever worked with a server: its streams are
// missing.
var ErrNoRunner = errors.New("no runner has been here yet: start forge-runner, with this server")
