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
	// gather is how long changes wait for others: read and published together, they cost a
	// fraction, and journals come first.
	gather = 50 * time.Millisecond
	// lookAgain is how often journals are looked at that other runners went on with.
	lookAgain = time.Second
	// drainChanges bounds how long what was decided before the end takes to be told.
	drainChanges = 3 * time.Second
	// foreign bounds the messages of others that are passed over at the stream's end.
	foreign = 1000
	// remembered bounds the intents whose last state is kept in memory.
	remembered = 8192
)

// Publish tells everybody what changes, from what the journals say, until ctx
// ends, and then what changed before. Several runners may do so: each change is
// published once, because every one has its place in the stream, and only the first
// message for a place gets it.
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
				ch.conn.Log.Warn("cannot publish changes; trying again", "error", err)
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

// publisher tells changes.
type publisher struct {
	changes *Stream
	ending  chan struct{} // closed when nothing is gathered any more
	active  atomic.Bool   // this runner publishes, and no other one
	told    atomic.Uint64 // the last record all of whose changes are confirmed
}

// drain waits until everything is told that there is.
func (p *publisher) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainChanges)
	defer cancel()
	last, err := p.changes.conn.Last(ctx, streams.Journal, subjects.EveryJournal)
	for err == nil && p.active.Load() && p.told.Load() < last.Seq {
		err = conn.Sleep(ctx, 2*time.Millisecond)
	}
}

// run publishes until something is in the way. With a wrong sequence it is another
// runner.
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
		if err := r.confirm(ctx, &p.told); err != nil {
			stop(err)
		}
	})
	there, err := p.changes.conn.Last(ctx, streams.Journal, subjects.EveryJournal)
	if errors.Is(err, conn.ErrNotFound) {
		err = nil
	}
	p.active.Store(true)
	for first := true; err == nil; first = false {
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

// wait returns when journals may have gone on.
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
	case <-time.After(gather):
	}
	return nil
}

// read tells what is in the journals, to their present end.
func (r *publishing) read(ctx context.Context) error {
	for {
		request := map[string]any{"batch": conn.BatchSize, "next_by_subj": subjects.EveryJournal}
		if r.next > 0 {
			request["seq"] = r.next
		} else {
			request["start_time"] = time.Now().Add(-streams.KeepEvents)
		}
		reading, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
		a, err := r.changes.conn.Get(reading, streams.Journal, request, func(m conn.Stored) error { return r.take(ctx, m) })
		cancel()
		if a.Last > 0 {
			r.next = a.Last + 1
		}
		if err != nil || !a.More {
			return err
		}
	}
}

// position returns how far the publishing has come, and the stream's last sequence. It is
// zero if nothing says it: then what changed in the last 30 days is told.
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
		ch.conn.Log.Error("somebody else publishes changes of intents; nobody but runners should be allowed to",
			"stream", streams.Events, "seq", seq, "subject", m.Subject)
	}
	return at, state.LastSeq, nil
}

// publishing is one run of a publisher.
type publishing struct {
	changes *Stream
	done    position // is in the stream
	next    uint64   // the sequence to go on at; 0: not known
	length  uint64   // of the stream, with what is on its way
	known   map[forge.Key]*knownIntent
	waiting chan confirmation
}

// knownIntent keeps the last state of an intent in memory.
type knownIntent struct {
	last   forge.Summary
	origin document.Origin
}

// confirmation is awaited of the server; without a future there was nothing to tell.
type confirmation struct {
	seq    uint64
	future jetstream.PubAckFuture
}

// confirm notes confirmations, and returns an error of the server.
func (r *publishing) confirm(ctx context.Context, told *atomic.Uint64) error {
	for {
		var c confirmation
		select {
		case <-ctx.Done():
			return nil
		case c = <-r.waiting:
		}
		if c.future == nil {
			told.Store(max(told.Load(), c.seq))
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

// take tells the changes of one record.
func (r *publishing) take(ctx context.Context, m conn.Stored) error {
	key, err := subjects.ParseJournal(m.Subject)
	if err != nil { // nobody's intent
		return r.await(ctx, confirmation{seq: m.Seq})
	}
	now, err := wire.ReadSummary(m.Data)
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
	for i, c := range changes(before, &now) {
		at := position{m.Seq, i}
		if at.seq == r.done.seq && at.index <= r.done.index {
			continue
		}
		if err := r.tell(ctx, c, at, &now, intent.origin); err != nil {
			return err
		}
	}
	r.remember(key, intent, now)
	return r.await(ctx, confirmation{seq: m.Seq})
}

func (r *publishing) tell(ctx context.Context, c change, at position, now *forge.Summary, origin document.Origin) error {
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

func (r *publishing) await(ctx context.Context, c confirmation) error {
	select {
	case r.waiting <- c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recall returns the state of an intent before a record: nothing, if that is its
// first.
func (r *publishing) recall(ctx context.Context, key forge.Key, m conn.Stored, now *forge.Summary) (*knownIntent, *forge.Summary, error) {
	if k := r.known[key]; k != nil {
		return k, &k.last, nil
	}
	if now.Run <= 1 && now.TaskCount+len(now.Children) == 0 {
		if k, ok := firstRecord(m.Data); ok {
			return k, nil, nil
		}
	}
	first, err := r.one(ctx, map[string]any{"seq": 1, "batch": 1, "next_by_subj": m.Subject})
	if err != nil {
		return nil, nil, err
	}
	k, _ := firstRecord(first.Data)
	if first.Seq == m.Seq {
		return k, nil, nil
	}
	last, err := r.one(ctx, map[string]any{"multi_last": []string{m.Subject}, "up_to_seq": m.Seq - 1, "batch": 1})
	if err != nil {
		return nil, nil, err
	}
	if k.last, err = wire.ReadSummary(last.Data); err != nil {
		return nil, nil, err
	}
	return k, &k.last, nil
}

// firstRecord reads the origin of an intent from its journal's first record, if the record
// is that.
func firstRecord(data []byte) (*knownIntent, bool) {
	rec, err := wire.Records.Unmarshal(data)
	if err != nil || len(rec.Events) == 0 {
		return &knownIntent{}, false
	}
	submit := forge.As[*forge.Submit](rec.Events[0].Message)
	if submit == nil {
		return &knownIntent{}, false
	}
	o := submit.Intent.Origin
	return &knownIntent{origin: document.Origin{System: document.Cut(o.System), EventID: document.Cut(o.EventID), Actor: document.Cut(o.Actor)}}, true
}

// one reads one message of the journal.
func (r *publishing) one(ctx context.Context, request map[string]any) (m conn.Stored, err error) {
	err = conn.Patiently(ctx, func(ctx context.Context) error {
		_, err := r.changes.conn.Get(ctx, streams.Journal, request, func(found conn.Stored) error {
			m = found
			return nil
		})
		return err
	})
	if err == nil && m.Seq == 0 {
		err = conn.ErrNotFound // a replica answered that is behind
	}
	return m, err
}

func (r *publishing) remember(key forge.Key, k *knownIntent, now forge.Summary) {
	if now.Idle && now.Status.Ended() {
		delete(r.known, key)
		return
	}
	if len(r.known) >= remembered {
		for other := range r.known {
			delete(r.known, other)
			break
		}
	}
	k.last = now
	r.known[key] = k
}
