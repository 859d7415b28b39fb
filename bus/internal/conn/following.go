package conn

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// silence bounds the wait for the next of the messages that were there at the
// start. After it the consumer is checked.
const silence = 3 * time.Second

// Following reads a stream from some message on and goes on live, across the
// consumers that it needs. The stream's messages come in order, each once.
type Following struct {
	Conn    *Conn
	Stream  string
	Filters []string
	// Next is the sequence to go on at; 0 begins at Since.
	Next uint64
	// Since is the time to begin at while Next is 0; zero means the beginning.
	Since time.Time
	// Take is called with each message. Its error ends Follow.
	Take func(context.Context, Stored) error
	// ReachedEnd, if not nil, is called once: when the messages from before the
	// start are taken.
	ReachedEnd func() error

	reached bool
	// until is, for a person, the sequence of the last message from before the start.
	until uint64
	// failed is the error of Take or ReachedEnd.
	failed error
}

// Follow calls the functions until ctx ends, and then returns nil; or it
// returns the error of one of them. Errors of the server are logged, and
// following goes on where it was.
func (f *Following) Follow(ctx context.Context) error {
	once := f.once
	if f.Conn.person != nil {
		once = f.asPerson
	}
	for attempt := 0; ctx.Err() == nil; attempt++ {
		err := once(ctx)
		if f.failed != nil {
			return f.failed
		}
		if ctx.Err() == nil {
			f.Conn.Log.WarnContext(ctx, "cannot follow a stream; trying again", "stream", f.Stream, "error", err)
			_ = Sleep(ctx, Backoff(attempt))
		}
	}
	return nil
}

// consumer returns the configuration of a consumer that begins at the next
// message.
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
		f.failed = f.Take(ctx, Stored{
			Subject: m.Subject(), Seq: meta.Sequence.Stream, Data: m.Data(), Header: m.Headers(), Relayed: m.Headers().Get(relayedBy) != "",
		})
		f.caughtUp(meta.NumPending)
	}
	return f.failed
}

// message returns the next one. While messages from before the start are
// missing, it does not wait for long.
func (f *Following) message(ctx context.Context, it jetstream.MessagesContext) (jetstream.Msg, error) {
	if !f.reached {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, silence)
		defer cancel()
	}
	return it.Next(jetstream.NextContext(ctx))
}

// silent looks into why messages from before the start do not come. The server
// leaves out a message that it cannot read from a damaged file, but counts it
// until then.
func (f *Following) silent(ctx context.Context, cons jetstream.Consumer) {
	setup, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	info, err := cons.Info(setup)
	if err != nil || info.NumPending > 0 {
		return // it is slow
	}
	f.Conn.Log.ErrorContext(ctx, "some messages of a stream cannot be read: the store is damaged", "stream", f.Stream, "next", f.Next)
	f.caughtUp(0)
}

// caughtUp calls ReachedEnd if no message is pending, once.
func (f *Following) caughtUp(pending uint64) {
	if f.reached || pending > 0 || f.failed != nil {
		return
	}
	f.reached = true
	if f.ReachedEnd != nil {
		f.failed = f.ReachedEnd()
	}
}
