package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
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
	// settle is how long after a message was heard that is not there yet the
	// stream is looked at once more, and a number of times after twice as long.
	settle, settles = 20 * time.Millisecond, 6
	// readTime bounds one look at the stream.
	readTime = 2 * conn.RequestTimeout
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
	heard := ear{wake: make(chan struct{}, 1)}
	sub, err := ch.conn.NC.Subscribe(filter, func(*nats.Msg) { heard.add() })
	if err != nil {
		return fmt.Errorf("listen to changes: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	began()
	pause, looks := lookSeldom, 0
	for {
		if after, err = ch.takeAfter(ctx, filter, after, func(p Published) error { heard.found(); return take(p) }); err != nil {
			if ctx.Err() != nil {
				return nil // whoever watched has gone
			}
			return err
		}
		switch {
		case !heard.waits(): // all that was heard was there
			pause, looks = lookSeldom, 0
		case looks == 0:
			pause, looks = settle, settles
		case looks == 1: // it was not stored, as what comes twice is not
			heard.forget()
			pause, looks = lookSeldom, 0
		default:
			pause, looks = 2*pause, looks-1
		}
		timer := time.NewTimer(pause)
		select {
		case <-heard.wake:
			looks = 0
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// ear counts the messages that were heard and that are not found in the stream
// yet. It may count too many, such as one that is found before it is heard, and
// then there are some looks in vain; never too few. It is safe for concurrent use.
type ear struct {
	mu   sync.Mutex
	open int
	wake chan struct{} // has room for one
}

// add counts a message that was heard.
func (e *ear) add() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// found counts a message that was found, heard or not.
func (e *ear) found() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = max(0, e.open-1)
}

// forget says that what was heard is not waited for any more.
func (e *ear) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = 0
}

// waits reports whether something was heard that is not found.
func (e *ear) waits() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open > 0
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
		next, err := ch.next(ctx, filter, after)
		if errors.Is(err, conn.ErrNotFound) {
			break
		}
		if err != nil {
			return after, fmt.Errorf("read changes: %w", err)
		}
		after = next.Seq
		if next.Kind == "" {
			continue
		}
		if err := take(next); err != nil {
			return after, err
		}
	}
	return after, nil
}

// next returns the message of a filter after a sequence, or conn.ErrNotFound.
// Its Kind is empty if it is no change. Of many who watch, all ask for the same
// at about the same time: they share the answer.
func (ch *Stream) next(ctx context.Context, filter string, after uint64) (Published, error) {
	return ch.looks.Do(ctx, fmt.Sprintf("%s %d", filter, after), func() (Published, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		m, err := conn.Next(ctx, ch.conn, streams.Events, filter, after)
		if err != nil {
			return Published{}, err
		}
		var ev CloudEvent[document.Change]
		kind, known := kindOf(m.Subject, func() (forge.Key, error) {
			err := json.Unmarshal(m.Data, &ev)
			return forge.Key{Project: ev.Data.Project, Intent: ev.Data.Intent}, err
		})
		if m.Relayed || !known {
			ch.conn.Log.WarnContext(ctx, "a message is no change of an intent", "subject", m.Subject, "sequence", m.Seq)
			kind = ""
		}
		return Published{Seq: m.Seq, Kind: kind, Event: m.Data}, nil
	})
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
