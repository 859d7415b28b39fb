package bus

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// silence is how long the next of what was there at the start may take, until a
// look is taken why.
const silence = 3 * time.Second

// following reads a stream and goes on live, across the consumers that it needs.
type following struct {
	conn       *Conn
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
			f.conn.log.Warn("cannot follow a stream; trying again", "stream", f.stream, "error", err)
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
	cons, err := f.conn.js.OrderedConsumer(setup, f.stream, f.consumer())
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
	f.conn.log.Error("some messages of a stream cannot be read: the store is damaged", "stream", f.stream, "next", f.next)
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
