package conn

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// silence is how long the next of what was there at the start may take, until a
// look is taken why.
const silence = 3 * time.Second

// Following reads a stream and goes on live, across the consumers that it needs.
type Following struct {
	Conn       *Conn
	Stream     string
	Filters    []string
	Next       uint64    // the sequence to go on at
	Since      time.Time // if not zero: where to begin, while next is 0
	Take       func(context.Context, Stored) error
	ReachedEnd func() error // called once, if not nil: what there was at the start is taken

	reached bool
	failed  error // of take or reachedEnd
}

// Follow returns nil when ctx ends, and an error of one of its functions.
func (f *Following) Follow(ctx context.Context) error {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		err := f.once(ctx)
		if f.failed != nil {
			return f.failed
		}
		if ctx.Err() == nil {
			f.Conn.Log.Warn("cannot follow a stream; trying again", "stream", f.Stream, "error", err)
			_ = Sleep(ctx, Backoff(attempt))
		}
	}
	return nil
}

func (f *Following) consumer() jetstream.OrderedConsumerConfig {
	cfg := jetstream.OrderedConsumerConfig{
		FilterSubjects:    f.Filters,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       f.Next,
		InactiveThreshold: time.Minute,
	}
	if f.Next == 0 {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &f.Since
	}
	return cfg
}

// once follows until a consumer cannot go on.
func (f *Following) once(ctx context.Context) error {
	setup, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	cons, err := f.Conn.JS.OrderedConsumer(setup, f.Stream, f.consumer())
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
		f.Next = meta.Sequence.Stream + 1
		f.failed = f.Take(ctx, Stored{Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data(), Header: m.Headers()})
		f.caughtUp(meta.NumPending)
	}
	return f.failed
}

// message returns the next one. What was there at the start has to come soon.
func (f *Following) message(ctx context.Context, it jetstream.MessagesContext) (jetstream.Msg, error) {
	if !f.reached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, silence)
		defer cancel()
	}
	return it.Next(jetstream.NextContext(ctx))
}

// silent looks into why what was there at the start does not come. What the server
// cannot read from a damaged file it leaves out, but counts it until then.
func (f *Following) silent(ctx context.Context, cons jetstream.Consumer) {
	setup, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	info, err := cons.Info(setup)
	if err != nil || info.NumPending > 0 {
		return // it is slow
	}
	f.Conn.Log.Error("some messages of a stream cannot be read: the store is damaged", "stream", f.Stream, "next", f.Next)
	f.caughtUp(0)
}

func (f *Following) caughtUp(pending uint64) {
	if f.reached || pending > 0 || f.failed != nil {
		return
	}
	f.reached = true
	if f.ReachedEnd != nil {
		f.failed = f.ReachedEnd()
	}
}
