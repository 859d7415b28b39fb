package decide

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// concurrency bounds the handlers that run at the same time.
const concurrency = 64

// Config says how a runner takes its events. The runner uses the zero value.
type Config struct {
	// Timeout bounds one call of a handler; 0 means 20 s.
	Timeout time.Duration
	// MaxErrors is the number of errors of a handler, other than Retry, after
	// which an event goes to the dead letters; 0 means 5. It counts in this
	// process: another runner begins at 0.
	MaxErrors int
	// Authors proves by signatures who sent a request or a result; nil: nothing is proven,
	// where accounts have no keys.
	Authors *signed.Keys
	// Together reports whether every runner reads signatures over several
	// messages; nil: not every one does.
	Together func() bool
	// Settings reports whether every runner reads a policy with its settings;
	// nil: not every one does.
	Settings func() bool
}

// header returns the header of an answer.
func (c *Config) header() nats.Header {
	h := nats.Header{}
	if c.Together != nil && c.Together() {
		h.Set(wire.HeaderTogether, "true")
	}
	if c.Settings != nil && c.Settings() {
		h.Set(wire.HeaderSettings, "true")
	}
	return h
}

// Delivery is an event that a runner has to decide on, once or again.
type Delivery struct {
	Event forge.Event
	// Attempt counts from 1; more than 1 means that the event was delivered
	// before, so that effects of its decision may be missing.
	Attempt int
	// Asked says that a person or another system sent it, and no machine, worker or timer.
	Asked bool
	conn  *conn.Conn
	// reply is the inbox of a sender that waits for the ruling; empty if none
	// does.
	reply string
	// header is that of the answer.
	header nats.Header
	// rejected is the refusal that a system is told when the handler has
	// returned.
	rejected *requests.Refusal
}

// Events gives events to runners: requests of people and systems, results of
// workers, timers, and outbox messages between machines.
type Events struct {
	conn        *conn.Conn
	submissions *requests.Submissions
}

// NewEvents returns the Events of a connection.
func NewEvents(c *conn.Conn, ss *requests.Submissions) *Events {
	return &Events{conn: c, submissions: ss}
}

// Respond tells the sender of the event the ruling, if it waits for that. It is
// called once the decision is journaled; when it fails, the sender only has to
// wait in vain. A system that submitted an intent is told a refusal by an event
// of its own.
func (d *Delivery) Respond(ctx context.Context, r forge.Ruling) {
	d.rejected = requests.Rejected(&d.Event, r)
	if d.reply == "" {
		return
	}
	data, err := wire.Rulings.Marshal(&r)
	if err == nil {
		err = d.conn.NC.PublishMsg(&nats.Msg{Subject: d.reply, Header: d.header, Data: data})
	}
	if err != nil {
		d.conn.Log.WarnContext(ctx, "cannot send the ruling", "event", d.Event.ID, "error", err)
	}
}

// Consume gives a handler the events of people, workers and clocks until ctx
// ends, and returns when the last handler has. Several runners share the events
// among them.
//
// Many handlers run at the same time. Only requests of people and other systems
// to one intent are handled one by one, in the order in which they came: an
// approval is not to overtake its submission.
//
// The handler's error decides about the event:
//
//	nil               it is done with
//	Retry             it comes again, as often as that takes
//	Terminate         it goes to the dead letters
//	any other, panic  it comes again, up to MaxErrors times; then it is a dead letter
//
// An event that cannot be read is a dead letter, too. One of a newer version is
// left for a runner that understands it; only requests of people and other
// systems are refused then.
func (es *Events) Consume(ctx context.Context, cfg Config, handle func(context.Context, *Delivery) error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 20 * time.Second
	}
	if cfg.MaxErrors == 0 {
		cfg.MaxErrors = 5
	}
	c := &eventConsumers{
		events: es, cfg: cfg, handle: handle,
		slots: make(chan struct{}, concurrency), tails: map[forge.Key]chan struct{}{}, failures: map[string]int{},
	}
	var pulls sync.WaitGroup
	for _, in := range inputs() {
		pulls.Go(func() {
			src := conn.Source{Stream: in.stream, Config: eventConsumer(in.filter), Ahead: 2 * concurrency}
			es.conn.Pull(ctx, src, func(m jetstream.Msg) { c.take(ctx, in, m) })
		})
	}
	pulls.Go(func() { c.takeResults(ctx) })
	pulls.Wait()
	c.running.Wait()
}

// input is a stream of events.
type input struct {
	stream string
	filter string
	// read returns a message as an event, and refuses one whose subject says
	// otherwise.
	read func(jetstream.Msg) (forge.Event, error)
	// people is set if people and systems may write to the stream: a mistake in a
	// message is answered to its sender.
	people bool
	// ordered says that the events of one machine are handled one after the
	// other.
	ordered bool
}

// inputs returns the streams that runners consume. Results come beside them,
// see takeResults.
func inputs() []input {
	return []input{
		{stream: streams.Intents, filter: "forge.intent.>", read: requests.ReadIntent, people: true, ordered: true},
		{stream: streams.Wakes, filter: "forge.wake.>", read: readWake},
	}
}

// eventConsumers is the state of one Consume.
type eventConsumers struct {
	events *Events
	cfg    Config
	handle func(context.Context, *Delivery) error
	// slots has room for the handlers that run.
	slots   chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// tails has a channel for each machine with ordered events under way. It is
	// closed when the last of them is handled.
	tails map[forge.Key]chan struct{}
	// failures counts the errors of each message.
	failures map[string]int
}

// take starts the handling of a message, and waits for nothing but a slot.
func (c *eventConsumers) take(ctx context.Context, in input, m jetstream.Msg) {
	release := conn.Hold(ctx, c.events.conn, m)
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		release()
		_ = m.Nak()
		return
	}
	done := func() { release(); <-c.slots }
	work := context.WithoutCancel(ctx) // handlers finish what they began
	ev, err := in.read(m)
	if err != nil {
		c.running.Go(func() {
			defer done()
			c.unreadable(work, in, m, err)
		})
		return
	}
	before, after := c.queue(in, ev.To)
	c.running.Go(func() {
		defer done()
		defer after()
		if in.people {
			if err := c.provenRequest(m, &ev); err != nil {
				c.unproven(work, in, m, err)
				return
			}
		}
		<-before
		c.one(work, in, m, ev)
	})
}

// open is a closed channel: an event that waits for it waits for nothing.
var open = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// queue appends an event to those of its machine: it returns a channel that the
// event has to wait for, and a function to call after it.
func (c *eventConsumers) queue(in input, key forge.Key) (before chan struct{}, after func()) {
	if !in.ordered {
		return open, func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.tails[key]
	if before == nil {
		before = open
	}
	own := make(chan struct{})
	c.tails[key] = own
	return before, func() {
		close(own)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.tails[key] == own {
			delete(c.tails, key)
		}
	}
}

// one handles an event, and tells the server the outcome: done, again, or a
// dead letter.
func (c *eventConsumers) one(ctx context.Context, in input, m jetstream.Msg, ev forge.Event) {
	ctx = logging.Event(ctx, &ev)
	meta, err := m.Metadata()
	if err != nil {
		c.events.conn.Log.ErrorContext(ctx, "ignored a message that no consumer delivered", "subject", m.Subject(), "error", err)
		return
	}
	id := fmt.Sprint(in.stream, "/", meta.Sequence.Stream)
	d := &Delivery{
		Event: ev, Attempt: int(meta.NumDelivered), Asked: in.people,
		conn: c.events.conn, reply: replyOf(m), header: c.cfg.header(),
	}
	err = c.call(ctx, d)
	if err == nil && d.rejected != nil {
		err = c.events.submissions.PublishRefusal(ctx, m, *d.rejected)
	}
	switch after, reason := c.outcome(ctx, id, &ev, err); {
	case err == nil:
		err = m.Ack()
	case reason != "":
		err = c.bury(ctx, in, m, reason)
	default:
		err = conn.Again(m, after)
	}
	if err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot acknowledge an event; it is delivered again", "event", ev.ID, "error", err)
	}
}

// outcome returns the consequence of a handler's error: the event comes again
// after a while, or, with a reason, it goes to the dead letters.
func (c *eventConsumers) outcome(ctx context.Context, id string, ev *forge.Event, err error) (after time.Duration, reason string) {
	var retry *conn.RetryError
	var terminate *conn.TerminateError
	switch {
	case err == nil:
		c.forgetErrors(id)
		return 0, ""
	case errors.As(err, &retry):
		c.events.conn.Log.WarnContext(ctx, "an event has to wait", "event", ev.ID, "error", err)
		return retry.After, ""
	case errors.As(err, &terminate):
		c.forgetErrors(id)
		return 0, terminate.Reason
	}
	n := c.fail(id)
	c.events.conn.Log.WarnContext(ctx, "an event cannot be handled", "event", ev.ID, "failures", n, "error", err)
	if n < c.cfg.MaxErrors {
		return conn.Backoff(n + 3), ""
	}
	c.forgetErrors(id)
	return 0, fmt.Sprintf("given up after %d errors: %v", n, err)
}

// call calls the handler within its time, and turns a panic into an error.
func (c *eventConsumers) call(ctx context.Context, d *Delivery) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	loop := c.events.conn.Alive.Begin("decision") // it ends within its time, also if the server is away
	defer loop.End()
	defer func() {
		if p := recover(); p != nil {
			c.events.conn.Log.ErrorContext(ctx, "the handler of an event panics", "event", d.Event.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.handle(ctx, d)
}

// fail counts an error of a message, and returns how many it has had.
func (c *eventConsumers) fail(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[id]++
	return c.failures[id]
}

// forgetErrors forgets the errors of a message that does not come again.
func (c *eventConsumers) forgetErrors(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, id)
}

// eventConsumer returns the consumer that all runners share.
func eventConsumer(filter string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       "runner",
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       streams.AckWait,
		MaxDeliver:    -1, // a runner counts failures itself, because a retry that it asks for is none
		MaxAckPending: 2000,
	}
}
