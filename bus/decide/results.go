package decide

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// resultsWaiting bounds the results that wait in a runner for a free handler, in
// messages and in bytes. One that is dropped is sent again.
const (
	resultsWaiting = 10_000
	resultsBytes   = 256 << 20
)

// takeResults gives the handler the results of workers, until ctx ends. They
// are requests, stored nowhere, and each goes to one of the runners: the worker
// keeps its result until it is decided.
func (c *eventConsumers) takeResults(ctx context.Context) {
	closed := make(chan struct{})
	sub, err := c.events.conn.NC.QueueSubscribe(subjects.EveryResult, "runner", func(m *nats.Msg) { c.takeResult(ctx, m) })
	if err == nil {
		err = sub.SetPendingLimits(resultsWaiting, resultsBytes)
	}
	if err != nil { // the bus is closed
		c.events.conn.Log.WarnContext(ctx, "cannot take results", "error", err)
		return
	}
	sub.SetClosedHandler(func(string) { close(closed) })
	<-ctx.Done()
	if c.events.conn.NC.IsConnected() && sub.Drain() == nil {
		<-closed // what came before the end is answered
		return
	}
	_ = sub.Unsubscribe()
}

// takeResult starts the handling of a result, and waits for nothing but a slot.
func (c *eventConsumers) takeResult(ctx context.Context, m *nats.Msg) {
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		c.answer(ctx, m, wire.HeaderAgain, "0s") // another runner takes it
		return
	}
	work := context.WithoutCancel(ctx)
	c.running.Go(func() {
		defer func() { <-c.slots }()
		ev, err := readResult(m.Subject, m.Data)
		if relayed := wire.Relayed(m.Header); relayed != nil {
			err = relayed
		}
		if err == nil {
			err = c.provenResult(m, &ev)
		}
		if err != nil {
			c.unreadableResult(work, m, err)
			return
		}
		c.oneResult(work, m, ev)
	})
}

// oneResult handles a result, and tells its worker the outcome: decided,
// refused, or to send it again after a while.
func (c *eventConsumers) oneResult(ctx context.Context, m *nats.Msg, ev forge.Event) {
	ctx = logging.Event(ctx, &ev)
	d := &Delivery{Event: ev, Attempt: max(1, int(conn.Number(m, wire.HeaderDelivery))), conn: c.events.conn}
	err := c.call(ctx, d)
	switch after, reason := c.outcome(ctx, ev.ID, &ev, err); {
	case err == nil:
		c.answer(ctx, m, wire.HeaderDecided, "true")
	case reason != "":
		c.refuse(ctx, m, reason)
	default:
		c.answer(ctx, m, wire.HeaderAgain, after.String())
	}
}

// unreadableResult settles a message that is no result, or one of a newer version, which is
// sent again until a runner understands it.
func (c *eventConsumers) unreadableResult(ctx context.Context, m *nats.Msg, err error) {
	if c.unprovenResult(ctx, m, err) {
		return
	}
	if _, ok := errors.AsType[*wire.UnknownError](err); !ok {
		c.refuse(ctx, m, err.Error())
		return
	}
	id, dead := conn.Unstored(deadResults, m.Subject, m.Data)
	if err := c.events.conn.BuryNewer(ctx, id, "", dead, err); err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot report a result of a newer version", "subject", m.Subject, "error", err)
	}
	c.answer(ctx, m, wire.HeaderAgain, conn.ParkTime.String())
}

// refuse puts a result among the dead letters. Unless that succeeds, it comes again.
func (c *eventConsumers) refuse(ctx context.Context, m *nats.Msg, reason string) {
	id, dead := conn.Unstored(deadResults, m.Subject, m.Data)
	if err := c.events.conn.BuryAs(ctx, id, "", dead, reason); err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot put a result aside; it comes again", "subject", m.Subject, "error", err)
		c.answer(ctx, m, wire.HeaderAgain, "1s")
		return
	}
	c.answer(ctx, m, wire.HeaderReason, wire.OneLine(reason))
}

// answer tells a worker the outcome of its result, in one header. A worker that
// does not hear it asks again.
func (c *eventConsumers) answer(ctx context.Context, m *nats.Msg, header, value string) {
	sender := "" // of a step that there is not: nobody with a name may send that
	if step, _, err := subjects.ParseResult(m.Subject); err == nil {
		sender = step.Service()
	}
	if wire.InboxOf(sender, m.Reply) == "" {
		return
	}
	answer := &nats.Msg{Subject: m.Reply, Header: c.cfg.header()}
	answer.Header.Set(header, value)
	if err := c.events.conn.NC.PublishMsg(answer); err != nil {
		c.events.conn.Log.WarnContext(ctx, "cannot answer a worker", "subject", m.Subject, "error", err)
	}
}

// deadResults begins the ids of results among the dead letters.
const deadResults = "results"
