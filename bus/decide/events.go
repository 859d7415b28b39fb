package decide

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/requests"
)

// concurrency bounds the handlers that run at the same time.
const concurrency = 64

// Config says how a runner takes its events.
type Config struct {
	Timeout   time.Duration // of one handler; 0 means 20 s. It must end before the event is delivered again, after 30 s
	MaxErrors int           // errors of a handler, other than Retry, until an event goes to the dead letters; 0 means 5
}

// Delivery is an event that a runner has to decide on.
type Delivery struct {
	Event    forge.Event
	Attempt  int // counted from 1; more than 1 means that it was delivered before
	conn     *conn.Conn
	reply    string
	rejected *requests.Refusal // what a system is to be told
}

// Events gives events to runners: what people and systems ask for, what workers report,
// timers, and what machines say to one another.
type Events struct {
	conn        *conn.Conn
	submissions *requests.Submissions
}

// NewEvents returns the Events of a connection.
func NewEvents(c *conn.Conn, ss *requests.Submissions) *Events {
	return &Events{conn: c, submissions: ss}
}

// Respond tells the sender of the event what was decided, if it waits for that.
// It is called once the decision is journaled; when it fails, the sender only
// has to wait in vain.
func (d *Delivery) Respond(r forge.Ruling) {
	d.rejected = requests.Rejected(&d.Event, r)
	if d.reply == "" {
		return
	}
	data, err := wire.Rulings.Marshal(&r)
	if err == nil {
		err = d.conn.NC.Publish(d.reply, data)
	}
	if err != nil {
		d.conn.Log.Warn("cannot tell the ruling", "event", d.Event.ID, "error", err)
	}
}

// Consume gives a handler the events of people, workers and clocks until
// ctx ends, and returns when the last handler has. Several runners share the
// events among them.
//
// Many handlers run at the same time. Only what people and other systems send
// to one intent is handled one by one, in the order in which it came: an
// approval is not to overtake its submission.
//
// With nil the event is done with. With Retry it comes again, as often as that
// takes. With Terminate, or after some other errors or panics, it goes to the
// dead letters, and so does what cannot be read. What a newer version sent is
// left for a runner that understands it; only what people and other systems
// sent is refused.
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
	stream  string
	filter  string
	read    func(jetstream.Msg) (forge.Event, error)
	people  bool // people and systems may write to it
	ordered bool // per machine
}

func inputs() []input {
	return []input{
		{stream: streams.Intents, filter: "forge.intent.>", read: requests.ReadIntent, people: true, ordered: true},
		{stream: streams.Wakes, filter: "forge.wake.>", read: readWake},
	}
}

// eventConsumers is one Consume.
type eventConsumers struct {
	events  *Events
	cfg     Config
	handle  func(context.Context, *Delivery) error
	slots   chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	tails    map[forge.Key]chan struct{} // closed when the last ordered event of a machine is handled
	failures map[string]int              // errors per message
}

// take starts the handling of a message, and waits for nothing but a slot.
func (c *eventConsumers) take(ctx context.Context, in input, m jetstream.Msg) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		_ = m.Nak()
		return
	}
	done := func() { <-c.slots }
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
		<-before
		c.one(work, in, m, ev)
	})
}

var open = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// queue returns a channel that an event has to wait for, and a function to call after it.
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

// one handles an event, and says to the server what became of it.
func (c *eventConsumers) one(ctx context.Context, in input, m jetstream.Msg, ev forge.Event) {
	meta, err := m.Metadata()
	if err != nil {
		c.events.conn.Log.Error("ignored a message that no consumer delivered", "subject", m.Subject(), "error", err)
		return
	}
	id := fmt.Sprint(in.stream, "/", meta.Sequence.Stream)
	d := &Delivery{
		Event: ev, Attempt: int(meta.NumDelivered),
		conn: c.events.conn, reply: wire.InboxOnly(m.Headers().Get(wire.HeaderReply)),
	}
	err = c.call(ctx, d)
	if err == nil && d.rejected != nil {
		err = c.events.submissions.TellRefusal(ctx, m, *d.rejected)
	}
	switch after, reason := c.outcome(id, &ev, err); {
	case err == nil:
		err = m.Ack()
	case reason != "":
		err = c.bury(ctx, in, m, reason)
	default:
		err = conn.Again(m, after)
	}
	if err != nil {
		c.events.conn.Log.Warn("cannot tell the server about an event; it comes again", "event", ev.ID, "error", err)
	}
}

// outcome says what follows from a handler's error: the event comes again after a
// while, or, with a reason, it goes to the dead letters.
func (c *eventConsumers) outcome(id string, ev *forge.Event, err error) (after time.Duration, reason string) {
	var retry *conn.RetryError
	var terminate *conn.TerminateError
	switch {
	case err == nil:
		c.settle(id)
		return 0, ""
	case errors.As(err, &retry):
		c.events.conn.Log.Warn("an event has to wait", "event", ev.ID, "machine", ev.To.String(), "error", err)
		return retry.After, ""
	case errors.As(err, &terminate):
		c.settle(id)
		return 0, terminate.Reason
	}
	n := c.fail(id)
	c.events.conn.Log.Error("an event cannot be handled", "event", ev.ID, "machine", ev.To.String(), "failures", n, "error", err)
	if n < c.cfg.MaxErrors {
		return conn.Backoff(n + 3), ""
	}
	c.settle(id)
	return 0, fmt.Sprintf("given up after %d errors: %v", n, err)
}

func (c *eventConsumers) call(ctx context.Context, d *Delivery) (err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			c.events.conn.Log.Error("the handler of an event panics", "event", d.Event.ID, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return c.handle(ctx, d)
}

func (c *eventConsumers) fail(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[id]++
	return c.failures[id]
}

func (c *eventConsumers) settle(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failures, id)
}

// eventConsumer is the one that all runners share.
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
