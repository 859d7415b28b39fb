package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// guardInterval is how often Guard looks for a loss that nothing pointed to.
const guardInterval = 10 * time.Second

// Guard keeps commands, timers and events between machines in force until ctx
// ends. Their streams are in memory, because everything in them follows from the
// journals: Guard calls rebuild, which has to dispatch again what every machine
// has pending, at the start and whenever one of those streams turns out to be
// new. It makes the streams that are missing, whichever they are. When rebuild
// fails, it is called again.
func (b *Bus) Guard(ctx context.Context, rebuild func(context.Context) error) {
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	rebuilt := false
	for attempt := 0; ctx.Err() == nil; {
		if err := b.guard(ctx, &rebuilt, rebuild); err != nil {
			if ctx.Err() == nil {
				b.log.Error("cannot restore what is under way; trying again", "error", err)
			}
			_ = sleep(ctx, backoff(attempt))
			attempt++
			continue
		}
		attempt = 0
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-b.changed:
		}
	}
}

// guard looks once. The marks are set only after what they stand for is there.
func (b *Bus) guard(ctx context.Context, rebuilt *bool, rebuild func(context.Context) error) error {
	lost, err := b.lost(ctx)
	if err != nil {
		return err
	}
	gone, err := b.gone(ctx)
	if err != nil {
		return err
	}
	if *rebuilt && len(lost)+len(gone) == 0 {
		return nil
	}
	if *rebuilt && len(gone) > 0 {
		b.log.Error("streams are gone; they are made again, without what they held", "streams", gone)
	}
	if err := b.Ensure(ctx); err != nil {
		return err
	}
	if err := rebuild(ctx); err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	for _, mark := range lost {
		m := nats.NewMsg(mark)
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
		_, err := b.publish(ctx, m)
		if refused, _ := wrongSequence(err); err != nil && !refused {
			return err
		}
	}
	*rebuilt = true
	return nil
}

// lost returns the marks of the streams in memory that are new, or missing.
func (b *Bus) lost(ctx context.Context) ([]string, error) {
	var marks []string
	for stream, mark := range map[string]string{streamCommands: epochCommands, streamWakes: epochWakes} {
		_, err := b.last(ctx, stream, mark)
		var refused *jetstream.APIError
		missing := errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamNotFound
		if errors.Is(err, ErrNotFound) || missing {
			marks = append(marks, mark)
		} else if err != nil {
			return nil, err
		}
	}
	return marks, nil
}

// gone returns the names of the streams that are missing.
func (b *Bus) gone(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	there := map[string]bool{}
	list := b.js.StreamNames(ctx)
	for name := range list.Name() {
		there[name] = true
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	var missing []string
	for _, cfg := range streams(b.replicas) {
		if !there[cfg.Name] {
			missing = append(missing, cfg.Name)
		}
	}
	return missing, nil
}
