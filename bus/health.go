package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
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

// Ready returns nil when commands of a step can reach a replica: its consumer
// and the one that all replicas share are there.
func (cs *Commands) Ready(ctx context.Context, step forge.Step, replica forge.ReplicaID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, r := range []forge.ReplicaID{"", replica} {
		cfg, err := commandConsumer(step, r, 0)
		if err != nil {
			return err
		}
		if _, err := cs.conn.js.Consumer(ctx, streamCommands, cfg.Durable); err != nil {
			return fmt.Errorf("consumer %s: %w", cfg.Durable, err)
		}
	}
	return nil
}

// Ready returns nil when events can reach a runner: the consumers that all
// runners share are there.
func (es *Events) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, stream := range []string{streamIntents, streamWakes} {
		if _, err := es.conn.js.Consumer(ctx, stream, eventConsumer("").Durable); err != nil {
			return fmt.Errorf("consumer of %s: %w", stream, err)
		}
	}
	return nil
}
