package bus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// silence is how long the next of what was there at the start may take, until a
// look is taken why.
const silence = 3 * time.Second

// Follower is told what is in the journals, and then what comes in. An error of
// either function ends Follow with that error.
type Follower struct {
	// Record is called with every record of the intents, in order.
	Record func(key forge.Key, seq uint64, rec forge.Record) error
	// Project, if not nil, is called with every record of the projects, from the first, in
	// order; between those and the intents' there is none. It is not called while Record
	// is.
	Project func(key forge.Key, seq uint64, rec forge.Record) error
	// CaughtUp, if not nil, is called once: when the records that there were at
	// the start have been seen.
	CaughtUp func() error
}

// Follow reads the journals of a project, or of all projects if it is empty,
// those of intents from a sequence on, 0 or 1 standing for the first, and goes on live
// until ctx ends. Then it returns nil. It outlives restarts of the server.
func (b *Bus) Follow(ctx context.Context, project forge.ProjectID, from uint64, f Follower) error {
	intents, err := intentJournals(project)
	if err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	projects, err := projectJournals(project)
	if err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	parts := []*following{b.followRecords(intents, from, f.Record)}
	if f.Project != nil {
		parts = append(parts, b.followRecords(projects, 0, f.Project))
	}
	if err := together(ctx, parts, f.CaughtUp); err != nil {
		return fmt.Errorf("follow journals: %w", err)
	}
	return nil
}

func (b *Bus) followRecords(filter string, from uint64, do func(forge.Key, uint64, forge.Record) error) *following {
	return &following{
		bus: b, stream: journalStream(filter), filters: []string{filter}, next: max(from, 1),
		take: func(ctx context.Context, m stored) error { return b.takeRecord(ctx, m, do) },
	}
}

// together follows several streams at the same time, and calls one function at a time.
// caughtUp, if not nil, is called when all have caught up.
func together(ctx context.Context, parts []*following, caughtUp func() error) error {
	var group sync.WaitGroup
	var calls sync.Mutex
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	behind := len(parts)
	for _, f := range parts {
		take := f.take
		f.take = func(ctx context.Context, m stored) error {
			calls.Lock()
			defer calls.Unlock()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return take(ctx, m)
		}
		f.reachedEnd = func() error {
			calls.Lock()
			defer calls.Unlock()
			if behind--; behind > 0 || caughtUp == nil || ctx.Err() != nil {
				return nil
			}
			return caughtUp()
		}
		group.Go(func() {
			if err := f.follow(ctx); err != nil {
				stop(err)
			}
		})
	}
	group.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// takeRecord hands a record on, if it is one.
func (b *Bus) takeRecord(ctx context.Context, m stored, do func(forge.Key, uint64, forge.Record) error) error {
	rec, ok, err := b.record(ctx, m)
	if err != nil || !ok {
		return err
	}
	key, err := parseJournalSubject(m.Subject)
	if err != nil {
		return err
	}
	return do(key, m.Seq, rec)
}

// following reads a stream and goes on live, across the consumers that it needs.
type following struct {
	bus        *Bus
	stream     string
	filters    []string
	next       uint64    // the sequence to go on at
	since      time.Time // if not zero: where to begin, while next is 0
	take       func(context.Context, stored) error
	reachedEnd func() error // called once, if not nil: what there was at the start is taken

	reached bool
	failed  error // of take or reachedEnd
}

// follow returns nil when ctx ends, and an error of one of its functions.
func (f *following) follow(ctx context.Context) error {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		err := f.once(ctx)
		if f.failed != nil {
			return f.failed
		}
		if ctx.Err() == nil {
			f.bus.log.Warn("cannot follow a stream; trying again", "stream", f.stream, "error", err)
			_ = sleep(ctx, backoff(attempt))
		}
	}
	return nil
}

func (f *following) consumer() jetstream.OrderedConsumerConfig {
	cfg := jetstream.OrderedConsumerConfig{
		FilterSubjects:    f.filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.next,
		InactiveThreshold: time.Minute,
	}
	if f.next == 0 {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &f.since
	}
	return cfg
}

// once follows until a consumer cannot go on.
func (f *following) once(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cons, err := f.bus.js.OrderedConsumer(setup, f.stream, f.consumer())
	if err != nil {
		return err
	}
	if f.caughtUp(cons.CachedInfo().NumPending); f.failed != nil {
		return f.failed
	}
	it, err := cons.Messages(jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	for f.failed == nil {
		m, err := f.message(ctx, it)
		if errors.Is(err, jetstream.ErrNoHeartbeat) {
			continue
		}
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			f.silent(ctx, cons)
			continue
		}
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		f.next = meta.Sequence.Stream + 1
		f.failed = f.take(ctx, stored{Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data(), Header: m.Headers()})
		f.caughtUp(meta.NumPending)
	}
	return f.failed
}

// message returns the next one. What was there at the start has to come soon.
func (f *following) message(ctx context.Context, it jetstream.MessagesContext) (jetstream.Msg, error) {
	if !f.reached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, silence)
		defer cancel()
	}
	return it.Next(jetstream.NextContext(ctx))
}

// silent looks into why what was there at the start does not come. What the server
// cannot read from a damaged file it leaves out, but counts it until then.
func (f *following) silent(ctx context.Context, cons jetstream.Consumer) {
	setup, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := cons.Info(setup)
	if err != nil || info.NumPending > 0 {
		return // it is slow
	}
	f.bus.log.Error("some messages of a stream cannot be read: the store is damaged", "stream", f.stream, "next", f.next)
	f.caughtUp(0)
}

func (f *following) caughtUp(pending uint64) {
	if f.reached || pending > 0 || f.failed != nil {
		return
	}
	f.reached = true
	if f.reachedEnd != nil {
		f.failed = f.reachedEnd()
	}
}
