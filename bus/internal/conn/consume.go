package conn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/internal/retry"
)

// Source is a consumer of a stream.
type Source struct {
	Stream string
	Config jetstream.ConsumerConfig
	// Ahead is how many messages the server may send before they are asked for.
	Ahead int
	// Made says that another service makes the consumer: it is waited for, and
	// never made or altered.
	Made bool
}

// Pull gives a source's messages to take, one after the other, until ctx ends. The consumer
// is made when it is missing, unless another service does that, also when it, or its
// stream, gets lost on the way. What the server sent ahead when ctx ends is given back.
func (c *Conn) Pull(ctx context.Context, src Source, take func(jetstream.Msg)) {
	var notices retry.Notices
	loop := c.Alive.Loop("consumer " + src.Config.Durable + " of " + src.Stream)
	defer loop.End()
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		err := c.pullOnce(ctx, src, loop, take)
		loop.Rest()
		if time.Since(began) > 10*time.Second {
			attempt = 0
			notices.Reset()
		}
		if err != nil && ctx.Err() == nil {
			if notices.Due(time.Now()) {
				c.Log.WarnContext(ctx, "cannot consume; trying again", "stream", src.Stream, "consumer", src.Config.Durable, "error", err)
			}
			c.Poke()
		}
		_ = Sleep(ctx, Backoff(attempt))
	}
}

// pullOnce takes messages until the consumer fails or ctx ends. At the end it
// takes those that the server has sent ahead, if the server can still be
// reached.
func (c *Conn) pullOnce(ctx context.Context, src Source, loop *alive.Loop, take func(jetstream.Msg)) error {
	loop.Busy()
	cons, err := c.EnsureConsumer(ctx, src)
	if err != nil {
		return err
	}
	it, err := cons.Messages(jetstream.PullMaxMessages(src.Ahead),
		jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, func() {
		if c.NC.IsConnected() {
			it.Drain()
		} else {
			it.Stop() // a drain would wait long for a server that is away
		}
	})()
	for ctx.Err() == nil || src.Ahead > 1 { // with one at a time, none was sent ahead
		loop.Rest() // for a message, or below until there is room for another one
		m, err := next(it)
		switch {
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			loop.Busy()
			if err := c.alive(ctx, cons); err != nil {
				return err
			}
		case err != nil:
			return err
		case ctx.Err() != nil:
			_ = m.Nak()
		default:
			take(m)
		}
	}
	return nil
}

// Hold has the server know that a message is being worked on, until release is called: other
// processes do not get it meanwhile, however long that takes.
func Hold(ctx context.Context, c *Conn, m jetstream.Msg) (release func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(streams.AckWait / 4)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := m.InProgress(); err != nil {
					c.Log.WarnContext(ctx, "cannot report that a message is being worked on", "subject", m.Subject(), "error", err)
				}
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-done }
}

// nudges are after how long the client is made to look once more whether it has to ask for a
// message. They get longer, for a machine so busy that the client is held up where it asks, and
// end, because the client listens for missing heartbeats only while it is not interrupted.
var nudges = []time.Duration{
	10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	160 * time.Millisecond, 320 * time.Millisecond, 640 * time.Millisecond,
}

// next returns the next message. When a message comes before the client is through
// with asking for it, the client does not ask for the one after, and would find that
// out only when the heartbeats are missing, seconds later.
func next(it jetstream.MessagesContext) (jetstream.Msg, error) {
	for _, nudge := range nudges {
		m, err := it.Next(jetstream.NextMaxWait(nudge))
		if !errors.Is(err, nats.ErrTimeout) {
			return m, err
		}
	}
	return it.Next()
}

// alive returns an error if a consumer is gone for good. That the server cannot
// be asked is none: the connection comes back, and the iterator goes on.
func (c *Conn) alive(ctx context.Context, cons jetstream.Consumer) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	_, err := cons.Info(ctx)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return nil
}

// EnsureConsumer looks first: whoever may only consume is not allowed to make
// consumers.
func (c *Conn) EnsureConsumer(ctx context.Context, src Source) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	cons, err := c.Consumer(ctx, src.Stream, src.Config.Durable)
	if err == nil {
		have := cons.CachedInfo().Config
		if src.Made || have.MaxAckPending == src.Config.MaxAckPending && have.AckWait == src.Config.AckWait &&
			have.FilterSubject == src.Config.FilterSubject && slices.Equal(have.FilterSubjects, src.Config.FilterSubjects) &&
			have.InactiveThreshold == src.Config.InactiveThreshold {
			return cons, nil
		}
	} else if src.Made || !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("look for consumer: %w", err)
	}
	subject := "$JS.API.CONSUMER.CREATE." + src.Stream + "." + src.Config.Durable
	if src.Config.FilterSubject != "" {
		subject += "." + src.Config.FilterSubject
	}
	err = c.Permitted(ctx, subject, func(ctx context.Context) (err error) {
		cons, err = c.JS.CreateOrUpdateConsumer(ctx, src.Stream, src.Config)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	return cons, nil
}

// Consumer looks a consumer up.
func (c *Conn) Consumer(ctx context.Context, stream, name string) (cons jetstream.Consumer, err error) {
	err = c.Permitted(ctx, "$JS.API.CONSUMER.INFO."+stream+"."+name, func(ctx context.Context) (err error) {
		cons, err = c.JS.Consumer(ctx, stream, name)
		return err
	})
	return cons, err
}
