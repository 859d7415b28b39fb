package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// moveLanes moves the journals of lanes out of the intents' stream, where an earlier
// version kept them. It may be interrupted at any point, and be called by several
// runners at once: what is there already is not copied again, and nothing is removed
// before it is there.
func (b *Bus) moveLanes(ctx context.Context) error {
	subjects, err := b.subjects(ctx, streamJournal, everyLane)
	if err != nil {
		return fmt.Errorf("look for the journals of lanes: %w", err)
	}
	for _, subject := range subjects {
		for attempt := 0; ; attempt++ {
			err := b.moveLane(ctx, subject)
			if err == nil {
				break
			}
			if refused, _ := wrongSequence(err); !refused || sleep(ctx, backoff(attempt)) != nil {
				return fmt.Errorf("move %s to %s: %w", subject, streamLanes, err)
			} // else another runner moves it, too
		}
	}
	return nil
}

func (b *Bus) moveLane(ctx context.Context, subject string) error {
	there := 0
	last, err := b.each(ctx, streamLanes, subject, func(stored) error { there++; return nil })
	if err != nil {
		return err
	}
	_, err = b.each(ctx, streamJournal, subject, func(m stored) error {
		if there > 0 {
			there--
			return nil
		}
		copied := nats.NewMsg(subject)
		copied.Data = m.Data
		copied.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(last))
		ack, err := b.publish(ctx, copied)
		if err == nil {
			last = ack.Sequence
		}
		return err
	})
	if err != nil {
		return err
	}
	var done struct{}
	return b.api(ctx, "STREAM.PURGE."+streamJournal, map[string]string{"filter": subject}, &done)
}

// subjects lists the subjects of a stream's messages that a filter matches; none if
// there is no such stream.
func (b *Bus) subjects(ctx context.Context, stream, filter string) ([]string, error) {
	var list []string
	err := patiently(ctx, func(ctx context.Context) error {
		s, err := b.js.Stream(ctx, stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
		if err == nil {
			list = slices.Sorted(maps.Keys(info.State.Subjects))
		}
		return err
	})
	return list, err
}
