package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// Published is a change as it is stored.
type Published struct {
	// Seq orders the changes of all projects. A watch goes on after it.
	Seq  uint64
	Kind Kind
	// Event is the CloudEvent, as JSON.
	Event []byte
}

// Now has Watch begin with the next change.
const Now = ^uint64(0)

// ErrPosition says that a watch cannot go on after a sequence: there was none like it.
var ErrPosition = errors.New("there was no change at this position")

// A watch has no consumer on the server. What is published is heard on its subject, and read
// from the stream, where it may be a moment later.
const (
	// lookSeldom is how often a watch looks without having heard anything.
	lookSeldom = 15 * time.Second
	// settle is how long after a message was heard the stream is looked at once more, and a
	// number of times after twice as long.
	settle, settles = 20 * time.Millisecond, 6
)

// Watch calls take with a project's changes after a position, in order, until ctx ends, and
// then returns nil; or it returns the error of take. Changes from before a month ago are
// gone. began is called when the first look can be taken. Errors: ErrPosition, or the
// server's.
func (ch *Stream) Watch(ctx context.Context, p forge.ProjectID, after uint64, began func(), take func(Published) error) error {
	filter, err := subjects.Changes(p, "")
	if err != nil {
		return err
	}
	if after, err = ch.watchFrom(ctx, filter, after); err != nil {
		return err
	}
	heard := make(chan struct{}, 1)
	sub, err := ch.conn.NC.Subscribe(filter, func(*nats.Msg) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("listen to changes: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	began()
	pause, looks := lookSeldom, 0
	for {
		if after, err = ch.takeAfter(ctx, filter, after, take); err != nil {
			if ctx.Err() != nil {
				return nil // whoever watched has gone
			}
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-heard:
			pause, looks = settle, settles
		case <-timer.C:
			if looks--; looks > 0 {
				pause *= 2
			} else {
				pause = lookSeldom
			}
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// watchFrom returns the sequence after which a watch begins.
func (ch *Stream) watchFrom(ctx context.Context, filter string, after uint64) (uint64, error) {
	every, err := subjects.Changes("", "")
	if err != nil {
		return 0, err
	}
	if after == Now {
		every = filter
	}
	last, err := ch.conn.Last(ctx, streams.Events, every)
	if err != nil && !errors.Is(err, conn.ErrNotFound) {
		return 0, fmt.Errorf("look for the last change: %w", err)
	}
	if after == Now {
		return last.Seq, nil
	}
	if after <= last.Seq {
		return after, nil
	}
	// After a quiet month every change is gone. The stream still knows how many there were.
	s, err := ch.conn.JS.Stream(ctx, streams.Events)
	if err != nil {
		ch.conn.Log.WarnContext(ctx, "cannot ask how far changes have come", "error", err)
		return 0, ErrPosition
	}
	if after > s.CachedInfo().State.LastSeq {
		return 0, ErrPosition
	}
	return after, nil
}

// takeAfter hands on what is stored after a sequence, and returns the last one.
func (ch *Stream) takeAfter(ctx context.Context, filter string, after uint64, take func(Published) error) (uint64, error) {
	for ctx.Err() == nil {
		m, err := conn.Next(ctx, ch.conn, streams.Events, filter, after)
		if errors.Is(err, conn.ErrNotFound) {
			break
		}
		if err != nil {
			return after, fmt.Errorf("read changes: %w", err)
		}
		after = m.Seq
		var ev CloudEvent[document.Change]
		kind, known := kindOf(m.Subject, func() (forge.Key, error) {
			err := json.Unmarshal(m.Data, &ev)
			return forge.Key{Project: ev.Data.Project, Intent: ev.Data.Intent}, err
		})
		if m.Relayed || !known {
			ch.conn.Log.WarnContext(ctx, "a message is no change of an intent", "subject", m.Subject, "sequence", m.Seq)
			continue
		}
		if err := take(Published{Seq: m.Seq, Kind: kind, Event: m.Data}); err != nil {
			return after, err
		}
	}
	return after, nil
}

// kindOf returns the kind of change that a subject names; false where the content is about
// another intent, or is no change.
func kindOf(subject string, read func() (forge.Key, error)) (Kind, bool) {
	key, err := read()
	if err != nil {
		return "", false
	}
	for _, what := range Kinds() {
		if s, err := subjects.Change(key, string(what)); err == nil && s == subject {
			return what, true
		}
	}
	return "", false
}
