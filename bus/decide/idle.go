package decide

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Idle reports whether the runners have decided on every event that there is: none
// waits to be delivered, and none is being handled. It says nothing about timers
// and running attempts: a machine that waits for these is not settled. Events that
// were delivered to a runner that was killed make it false until they are delivered
// again.
//
// A person asks a runner, and only about the project.
func (es *Events) Idle(ctx context.Context) (bool, error) {
	if es.conn.Project() != "" {
		return es.conn.Idle(ctx)
	}
	return es.IdleIn(ctx, "")
}

// IdleIn is Idle for the events of a project, or of all if it is empty. Events of other projects
// that wait may make it false for a while.
func (es *Events) IdleIn(ctx context.Context, project forge.ProjectID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	for _, in := range inputs() {
		stored, err := es.eventsIn(ctx, in, project)
		if err != nil {
			return false, err
		}
		cfg := eventConsumer(in.filter)
		cons, err := es.conn.JS.Consumer(ctx, in.stream, cfg.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return false, nil // no runner has been there yet
		}
		if err != nil {
			return false, fmt.Errorf("consumer %s of %s: %w", cfg.Durable, in.stream, err)
		}
		info := cons.CachedInfo()
		if project != "" && info.AckFloor.Stream >= stored {
			continue
		}
		if info.NumPending > 0 || info.NumAckPending > 0 || info.Delivered.Stream < stored {
			return false, nil
		}
	}
	return true, nil
}

// eventsIn returns the sequence of the last event in a stream, of a project or of all, 0 if
// there is none: a consumer hears of an event a moment after it was stored.
func (es *Events) eventsIn(ctx context.Context, in input, project forge.ProjectID) (last uint64, err error) {
	filters := []string{in.filter}
	if project != "" {
		if filters, err = subjects.EventsIn(in.filter, project); err != nil {
			return 0, err
		}
	}
	for _, filter := range filters {
		m, err := es.conn.Last(ctx, in.stream, filter)
		var refused *jetstream.APIError
		missing := errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamNotFound
		if err != nil && !errors.Is(err, conn.ErrNotFound) && !missing {
			return 0, err
		}
		last = max(last, m.Seq)
	}
	return last, nil
}

// Reclaim has events delivered again at once that a runner took and did not finish.
// It is for whoever knows that no runner is left: otherwise an event of a runner
// that was killed comes again only when it counts as lost, and events that are
// being handled are handled twice.
func (es *Events) Reclaim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	for _, in := range inputs() {
		name := eventConsumer(in.filter).Durable
		cons, err := es.conn.JS.Consumer(ctx, in.stream, name)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err == nil && cons.CachedInfo().NumAckPending > 0 {
			_, err = es.conn.JS.ResetConsumer(ctx, in.stream, name)
		}
		if err != nil {
			return fmt.Errorf("reclaim the events of %s: %w", in.stream, err)
		}
	}
	return nil
}

// Ready returns nil when events can reach a runner: the consumers that all
// runners share are there.
func (es *Events) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	for _, stream := range []string{streams.Intents, streams.Wakes} {
		if _, err := es.conn.JS.Consumer(ctx, stream, eventConsumer("").Durable); err != nil {
			return fmt.Errorf("consumer of %s: %w", stream, err)
		}
	}
	return nil
}
