package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Idle reports whether the runners have decided on every event that there is: none
// waits to be delivered, and none is being handled. It says nothing about timers
// and running attempts: a machine that waits for these is not settled. Events that
// were delivered to a runner that was killed make it false until they are delivered
// again.
func (b *Bus) Idle(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, in := range inputs() {
		cfg := eventConsumer(in.filter)
		cons, err := b.js.Consumer(ctx, in.stream, cfg.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, nil // no runner has been there yet
		}
		if err != nil {
			return false, fmt.Errorf("consumer %s of %s: %w", cfg.Durable, in.stream, err)
		}
		info := cons.CachedInfo()
		if info.NumPending > 0 || info.NumAckPending > 0 {
			return false, nil
		}
	}
	return true, nil
}
