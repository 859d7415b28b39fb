package changes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

const (
	// inFlight bounds the changes that are published and not confirmed.
	inFlight = 256
	// standBy is how long a runner leaves publishing to another one, at least.
	standBy = 3 * time.Second
	// gather is how long after a look at the journals the next one is taken at
	// the soonest: changes that are read and published together cost a fraction,
	// and journals come first. A change after a pause is published at once.
	gather = 50 * time.Millisecond
	// lookAgain is the interval at which journals are read for decisions of
	// other runners, of which no signal comes.
	lookAgain = time.Second
	// drainChanges bounds the time, after the end, in which decisions from
	// before it are published.
	drainChanges = 3 * time.Second
	// foreign bounds the messages of others that are passed over at the stream's end.
	foreign = 1000
	// remembered bounds the intents whose last state is kept in memory. Others
	// are read again.
	remembered = 8192
)

// Publish publishes the changes of all intents, which it finds in the journals,
// until ctx ends, and then those from before the end. Several runners may do
// so: each change is published once, because every one has its place in the
// stream, and only the first message for a place gets it. A runner that comes
// second stands by.
func (ch *Stream) Publish(ctx context.Context) {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	p := &publisher{changes: ch, ending: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() {
		for attempt := 0; work.Err() == nil && ctx.Err() == nil; attempt++ {
			err := p.run(work)
			if refused, _ := conn.WrongSequence(err); refused {
				attempt = 0
				_ = conn.Sleep(ctx, standBy+rand.N(standBy))
			} else if work.Err() == nil && ctx.Err() == nil {
				ch.conn.Log.WarnContext(ctx, "cannot publish changes; trying again", "error", err)
				_ = conn.Sleep(ctx, conn.Backoff(attempt))
			}
		}
		p.active.Store(false)
	})
	<-ctx.Done()
	close(p.ending)
	p.drain(work)
	stop()
	running.Wait()
}

// publisher is the state of one Publish.
type publisher struct {
	changes *Stream
	// ending is closed at the end of ctx: then changes do not wait for others
	// to be read with them.
	ending chan struct{}
	// active says that this runner publishes, and no other one.
	active atomic.Bool
	// confirmed is the sequence of the last record all of whose changes are
	// confirmed.
	confirmed atomic.Uint64
	// looked is when the journals were looked at last.
	looked time.Time
}

// drain waits until the changes of every journaled record are confirmed. It
// does not wait if another runner publishes.
func (p *publisher) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainChanges)
	defer cancel()
	last, err := p.changes.conn.Last(ctx, streams.Journal, subjects.EveryJournal)
	for err == nil && p.active.Load() && p.confirmed.Load() < last.Seq {
		err = conn.Sleep(ctx, 2*time.Millisecond)
	}
}

// run publishes until it meets an error. A wrong sequence means that another
// runner publishes.
func (p *publisher) run(ctx context.Context) error {
	at, length, err := p.changes.position(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := &publishing{
		changes: p.changes, done: at, next: at.seq, length: length,
		known: map[forge.Key]*knownIntent{}, waiting: make(chan confirmation, inFlight),
	}
	var confirming sync.WaitGroup
	confirming.Go(func() {
		if err := r.confirm(ctx, &p.confirmed); err != nil {
			stop(err)
		}
	})
	there, err := p.changes.conn.Last(ctx, streams.Journal, subjects.EveryJournal)
	if errors.Is(err, conn.ErrNotFound) {
		err = nil
	}
	p.active.Store(true)
	for first := true; err == nil; first = false {
		p.looked = time.Now()
		if err = r.read(ctx); err == nil && first { // what is too old is not told
			err = r.await(ctx, confirmation{seq: there.Seq})
		}
		if err == nil {
			err = p.wait(ctx)
		}
	}
	stop(err)
	confirming.Wait()
	p.active.Store(false)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// wait returns when journals may have gone on: on a signal of this process, or
// after a second.
func (p *publisher) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ending:
		return conn.Sleep(ctx, 2*time.Millisecond)
	case <-time.After(lookAgain):
		return nil
	case <-p.changes.conn.Appended:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ending:
	case <-time.After(time.Until(p.looked.Add(gather))):
	}
	return nil
}

// read publishes the changes of the records from r.next on, up to the present
// end of the journals.
func (r *publishing) read(ctx context.Context) error {
	for {
		q := &conn.Query{Batch: conn.BatchSize, Next: subjects.EveryJournal, Seq: r.next}
		if r.next == 0 {
			since := time.Now().Add(-streams.KeepEvents)
			q.Since = &since
		}
		reading, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
		a, err := r.changes.conn.Get(reading, streams.Journal, q, func(m conn.Stored) error { return r.take(ctx, m) })
		cancel()
		if a.Last > 0 {
			r.next = a.Last + 1
		}
		if a.Last > 0 && conn.Unanswered(err) && ctx.Err() == nil {
			continue // a part of it came: the rest is asked for anew, or a slow connection would never get past it
		}
		if err != nil || !a.More {
			return err
		}
	}
}

// position returns how far the publishing has come, and the stream's last
// sequence. It is zero if nothing in the stream says it: then the changes of
// the last 30 days are published.
func (ch *Stream) position(ctx context.Context) (at position, length uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	s, err := ch.conn.JS.Stream(ctx, streams.Events)
	if err != nil {
		return at, 0, fmt.Errorf("stream %s: %w", streams.Events, err)
	}
	state := s.CachedInfo().State
	if state.Msgs == 0 {
		return at, state.LastSeq, nil
	}
	for seq := state.LastSeq; seq >= state.FirstSeq && seq > 0 && state.LastSeq-seq < foreign; seq-- {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return at, 0, fmt.Errorf("message %d of %s: %w", seq, streams.Events, err)
		}
		if at, err = parsePosition(m.Header.Get(headerPosition)); err == nil {
			return at, state.LastSeq, nil
		}
		ch.conn.Log.ErrorContext(ctx, "another account publishes changes of intents; only runners should be allowed to",
			"stream", streams.Events, "seq", seq, "subject", m.Subject)
	}
	return at, state.LastSeq, nil
}

// publishing is one run of a publisher, from one position on.
type publishing struct {
	changes *Stream
	// done is the last position that was in the stream at the beginning.
	done position
	// next is the sequence of the journal to go on at; 0 if it is not known.
	next uint64
	// length is the last sequence of the stream, counting the messages on their
	// way.
	length uint64
	// known has the state of intents before the next record, at most remembered
	// of them.
	known map[forge.Key]*knownIntent
	// waiting queues the messages that are published and not confirmed, in
	// order. Its room bounds them.
	waiting chan confirmation
}

// confirmation is an answer that is awaited of the server. Without a future it
// marks the end of the record seq.
type confirmation struct {
	seq    uint64
	future jetstream.PubAckFuture
}

// confirm awaits the answers in order, and stores how far everything is confirmed. It
// returns the first error of the server.
func (r *publishing) confirm(ctx context.Context, confirmed *atomic.Uint64) error {
	for {
		var c confirmation
		select {
		case <-ctx.Done():
			return nil
		case c = <-r.waiting:
		}
		if c.future == nil {
			confirmed.Store(max(confirmed.Load(), c.seq))
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.future.Ok():
		case err := <-c.future.Err():
			return fmt.Errorf("publish on %s: %w", c.future.Msg().Subject, err)
		}
	}
}

// take publishes the changes of one record: the differences between the
// summaries before and after it. Those up to r.done are in the stream already.
func (r *publishing) take(ctx context.Context, m conn.Stored) error {
	key, err := subjects.ParseJournal(m.Subject)
	if err != nil { // nobody's intent
		return r.await(ctx, confirmation{seq: m.Seq})
	}
	now, err := m.Summary()
	if _, ok := errors.AsType[*wire.GarbageError](err); ok { // whoever decides puts it among the dead letters
		return r.await(ctx, confirmation{seq: m.Seq})
	}
	if err != nil {
		return err
	}
	intent, before, err := r.recall(ctx, key, m, &now)
	if err != nil {
		return err
	}
	list, err := changesOf(m, before, &now)
	if err != nil {
		return err
	}
	for i, c := range list {
		at := position{m.Seq, i}
		if at.seq == r.done.seq && at.index <= r.done.index {
			continue
		}
		if err := r.publish(ctx, c, at, &now, intent.origin); err != nil {
			return err
		}
	}
	r.remember(key, intent, now)
	return r.await(ctx, confirmation{seq: m.Seq})
}

// publish publishes one change on condition that it gets the next place of the
// stream.
func (r *publishing) publish(ctx context.Context, c change, at position, now *forge.Summary, origin document.Origin) error {
	m, err := c.message(at, now, origin)
	if err != nil {
		return err
	}
	m.Header.Set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(r.length, 10))
	r.length++
	future, err := r.changes.conn.JS.PublishMsgAsync(m)
	if err != nil {
		return fmt.Errorf("publish on %s: %w", m.Subject, err)
	}
	return r.await(ctx, confirmation{future: future})
}

// await appends to the awaited answers. It waits while there are too many.
func (r *publishing) await(ctx context.Context, c confirmation) error {
	select {
	case r.waiting <- c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
