package decide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/turns"
)

// Effects makes the effects of machines' decisions happen. It is safe for
// concurrent use.
type Effects struct {
	conn *conn.Conn
	live *live.Messages
	// turns says where commands are stored.
	turns *turns.Turns
}

// NewEffects returns the Effects of a connection.
func NewEffects(c *conn.Conn, l *live.Messages, t *turns.Turns) *Effects {
	return &Effects{conn: c, live: l, turns: t}
}

// Dispatch makes the effects of a machine's decision happen, and returns when
// they are stored. It may be called again with the same effects, at any time: a
// command that is there already stays as it is, a timer is set again, and an
// event to another machine is recognised by that machine. An intent that ended
// loses its commands and timers first: what the effects add comes after.
func (ef *Effects) Dispatch(ctx context.Context, key forge.Key, eff forge.Effects) error {
	if err := subjects.CheckKey(key); err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	if eff.Ended && !key.IsProject() {
		if err := ef.forget(ctx, key); err != nil {
			return fmt.Errorf("dispatch for %s: %w", key, err)
		}
	}
	if err := ef.turns.Withdraw(ctx, key, eff.Cancels, eff.Ended); err != nil {
		return fmt.Errorf("dispatch for %s: %w", key, err)
	}
	list, stored, err := ef.outbox(ctx, &eff)
	seqs := make([]uint64, len(stored)) // the commands come first
	if err == nil {
		err = ef.storeAll(ctx, list, seqs)
	}
	for i, done := range stored { // also after an error: some may be stored
		done(seqs[i])
	}
	if err != nil {
		return fmt.Errorf("dispatch for %s: %w", key, err)
	}
	if len(eff.Cancels) == 0 && len(eff.ReleasedTasks) == 0 && !eff.Ended {
		return nil
	}
	return ef.live.Control(live.Control{To: key, Cancels: eff.Cancels, Released: eff.ReleasedTasks, Ended: eff.Ended})
}

// forget removes an ended intent's commands and timers. Commands that a worker
// has taken are not ended by that, but by the Control that Dispatch sends.
func (ef *Effects) forget(ctx context.Context, key forge.Key) error {
	var done struct{}
	filters := subjects.CommandsOf(key)
	if ef.turns.Bounded() {
		filters = nil // an agent counts until it has ended, and a worker that takes a command asks whether it is wanted
	}
	for _, filter := range filters {
		if err := ef.conn.API(ctx, "STREAM.PURGE."+streams.Commands, map[string]string{"filter": filter}, &done); err != nil {
			return err
		}
	}
	return ef.conn.API(ctx, "STREAM.PURGE."+streams.Wakes, map[string]string{"filter": subjects.Timers(key, "*")}, &done)
}

// outbox returns effects as messages: commands, timers and outbox messages, in this order. The
// caller calls what is in stored when they are stored, or could not be; also after an error.
func (ef *Effects) outbox(ctx context.Context, eff *forge.Effects) (list []*nats.Msg, stored []func(seq uint64), err error) {
	list = make([]*nats.Msg, 0, len(eff.Commands)+len(eff.Timers)+len(eff.Outbox))
	add := func(m *nats.Msg, err error) error {
		list = append(list, m)
		return err
	}
	for i := range eff.Commands {
		c := &eff.Commands[i]
		subject, done, err := ef.turns.Place(ctx, c)
		if err == nil {
			stored = append(stored, done)
			err = add(ef.commandMessage(subject, c))
		}
		if err != nil {
			return nil, stored, fmt.Errorf("command %s: %w", c.ID(), err)
		}
	}
	for i := range eff.Timers {
		if err := add(ef.timerMessage(&eff.Timers[i])); err != nil {
			return nil, stored, fmt.Errorf("timer %q: %w", eff.Timers[i].Key, err)
		}
	}
	for i := range eff.Outbox {
		if err := add(ef.wakeMessage(&eff.Outbox[i])); err != nil {
			return nil, stored, fmt.Errorf("event %q: %w", eff.Outbox[i].ID, err)
		}
	}
	return list, stored, nil
}

// commandMessage returns a command as a message that the server stores only on
// an empty subject: a subject is one claim of one attempt.
func (ef *Effects) commandMessage(subject string, c *forge.Command) (*nats.Msg, error) {
	data, err := wire.Commands.Marshal(c)
	if err != nil {
		return nil, err
	}
	m, err := ef.conn.Message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	}
	return m, err
}

// timerMessage returns a timer as a schedule: at its time, the server puts its
// payload on the machine's wake subject. A timer with the same key replaces the
// one before it.
func (ef *Effects) timerMessage(t *forge.Timer) (*nats.Msg, error) {
	subject, err := subjects.Timer(t)
	if err != nil {
		return nil, err
	}
	target, err := subjects.Wake(t.To)
	if err != nil {
		return nil, err
	}
	at := t.At.UTC().Format(time.RFC3339Nano)
	data, err := wire.Events.Marshal(&forge.Event{
		ID: "timer/" + t.To.String() + "/" + t.Key + "/" + at, To: t.To, Message: &forge.TimerFired{Key: t.Key, At: t.At},
	})
	if err != nil {
		return nil, err
	}
	m, err := ef.conn.Message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.ScheduleHeader, "@at "+at)
		m.Header.Set(jetstream.ScheduleTargetHeader, target)
		m.Header.Set(wire.HeaderKind, wire.KindWake) // the server leaves it on what it puts there
	}
	return m, err
}

// wakeMessage returns an outbox message as a message to its machine.
func (ef *Effects) wakeMessage(ev *forge.Event) (*nats.Msg, error) {
	subject, err := subjects.Wake(ev.To)
	if err != nil {
		return nil, err
	}
	data, err := wire.Events.Marshal(ev)
	if err != nil {
		return nil, err
	}
	m, err := ef.conn.Message(subject, data)
	if err == nil {
		m.Header.Set(wire.HeaderKind, wire.KindWake)
	}
	return m, err
}

// storeAll publishes all messages at once and waits for all to be stored. One
// that must be the first on its subject, and is not, is stored already. It
// notes the sequences of the first messages in seqs.
func (ef *Effects) storeAll(ctx context.Context, list []*nats.Msg, seqs []uint64) error {
	futures := make([]jetstream.PubAckFuture, 0, len(list))
	var errs []error
	for _, m := range list {
		f, err := ef.conn.JS.PublishMsgAsync(m, jetstream.WithStallWait(conn.RequestTimeout))
		if err != nil {
			errs = append(errs, fmt.Errorf("publish on %s: %w", m.Subject, err))
			break
		}
		futures = append(futures, f)
	}
	for i, f := range futures {
		select {
		case ack := <-f.Ok():
			if i < len(seqs) {
				seqs[i] = ack.Sequence
			}
		case err := <-f.Err():
			if _, settled := conn.WrongSequence(err); settled {
				err = ef.taken(ctx, f.Msg())
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("publish on %s: %w", f.Msg().Subject, err))
			}
		case <-ctx.Done():
			return errors.Join(append(errs, ctx.Err())...)
		}
	}
	return errors.Join(errs...)
}

// taken looks at the message that is on a command's subject already. That is
// the command itself; garbage and copies, which no worker takes, make way for it.
func (ef *Effects) taken(ctx context.Context, m *nats.Msg) error {
	there, err := ef.conn.Last(ctx, streams.Commands, m.Subject)
	if errors.Is(err, conn.ErrNotFound) {
		return nil // the intent ended meanwhile
	}
	if err != nil {
		return err
	}
	_, err = wire.ParsePlaced(there.Subject, there.Data)
	if _, garbage := errors.AsType[*wire.GarbageError](err); !garbage && !there.Relayed {
		return nil
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(there.Seq))
	_, err = ef.conn.Publish(ctx, m)
	if refused, _ := conn.WrongSequence(err); refused { // another runner was faster
		return nil
	}
	return err
}
