package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

const (
	// guardInterval is how often Guard looks for a loss that nothing pointed to.
	guardInterval = 10 * time.Second
	// heldResults is how long workers get, when the server is back that lost the
	// commands, to connect again and to report what they finished meanwhile: it need
	// not be done again by others.
	heldResults = time.Second
	// stalledAfter is how long a stream in memory may have no leader. One whose
	// servers started again too soon after one another never gets one.
	stalledAfter = time.Minute
)

// memoryStreams are the streams whose content is made again, and their marks.
var memoryStreams = map[string]string{streams.Commands: streams.EpochCommands, streams.Wakes: streams.EpochWakes}

// Guard keeps commands, timers and events between machines in force until ctx
// ends. Their streams are in memory, because everything in them follows from the
// journals: Guard calls rebuild, which has to dispatch again what every machine
// has pending, at the start and whenever one of those streams turns out to be
// new, or commands are for another group than their project's, which is changed while there
// are some. It makes the streams that are missing, whichever they are. When rebuild
// fails, it is called again.
func (b *Bus) Guard(ctx context.Context, rebuild func(context.Context) error) {
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	rebuilt := false
	var failing time.Time // since when
	var notices retry.Notices
	for attempt := 0; ctx.Err() == nil; {
		if err := b.guard(ctx, &rebuilt, rebuild); err != nil {
			if attempt == 0 {
				failing = time.Now()
			}
			if stalled, ok := errors.AsType[*stalledError](err); ok && time.Since(failing) > b.stalledAfter {
				err = errors.Join(err, b.unstall(ctx, stalled.stream))
			}
			if ctx.Err() == nil && notices.Due(time.Now()) {
				b.conn.Log.WarnContext(ctx, "cannot restore what is under way; trying again", "error", err)
			}
			_ = conn.Sleep(ctx, conn.Backoff(attempt))
			attempt++
			continue
		}
		attempt = 0
		notices.Reset()
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-b.conn.Changed:
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
	moved := false
	if len(gone) == 0 {
		if moved, err = b.withdrawMoved(ctx); err != nil {
			return err
		}
	}
	if *rebuilt && len(lost)+len(gone) == 0 && !moved {
		return nil
	}
	if kept := slices.DeleteFunc(slices.Clone(gone), inMemory); *rebuilt && len(kept) > 0 {
		b.conn.Log.ErrorContext(ctx, "streams are gone; they are made again, without what they held", "streams", kept)
	}
	if *rebuilt && len(lost) > 0 && conn.Sleep(ctx, heldResults) != nil {
		return ctx.Err()
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
		_, err := b.conn.Publish(ctx, m)
		if refused, _ := conn.WrongSequence(err); err != nil && !refused {
			return err
		}
	}
	*rebuilt = true
	return nil
}

// lost returns the marks of the streams in memory that are new, or missing.
func (b *Bus) lost(ctx context.Context) ([]string, error) {
	var marks []string
	for stream, mark := range memoryStreams {
		_, err := b.conn.Last(ctx, stream, mark)
		var refused *jetstream.APIError
		missing := errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamNotFound
		switch {
		case errors.Is(err, conn.ErrNotFound) || missing:
			marks = append(marks, mark)
		case conn.Unanswered(err):
			return nil, &stalledError{stream, err}
		case err != nil:
			return nil, err
		}
	}
	return marks, nil
}

// stalledError is that a stream in memory does not answer.
type stalledError struct {
	stream string
	err    error
}

func (e *stalledError) Error() string { return e.err.Error() }
func (e *stalledError) Unwrap() error { return e.err }

// unstall deletes a stream in memory that does not answer, so that it is made
// again. It does nothing while the journal does not answer either: then the
// cluster is missing.
func (b *Bus) unstall(ctx context.Context, stream string) error {
	if _, err := b.conn.Last(ctx, streams.Journal, subjects.EveryJournal); err != nil && !errors.Is(err, conn.ErrNotFound) {
		return err
	}
	b.conn.Log.WarnContext(ctx, "a stream in memory has no leader; it is made again", "stream", stream)
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	err := b.conn.JS.DeleteStream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// inMemory reports whether a stream is lost with the server, and has to be made
// again.
func inMemory(stream string) bool { return memoryStreams[stream] != "" }

// gone returns the names of the streams that are missing.
func (b *Bus) gone(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	there := map[string]bool{}
	list := b.conn.JS.StreamNames(ctx)
	for name := range list.Name() {
		there[name] = true
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	var missing []string
	for _, cfg := range streams.All(b.conn.Replicas) {
		if !there[cfg.Name] {
			missing = append(missing, cfg.Name)
		}
	}
	return missing, nil
}
