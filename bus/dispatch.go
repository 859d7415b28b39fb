package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
)

// Dispatch makes the effects of a machine's decision happen, and returns when
// they are stored. It may be called again with the same effects, at any time: a
// command that is there already stays as it is, a timer is set again, and an
// event to another machine is recognised by that machine.
func (b *Bus) Dispatch(ctx context.Context, key forge.Key, eff forge.Effects) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	if eff.Ended && !key.IsProject() {
		if err := b.forget(ctx, key); err != nil {
			return fmt.Errorf("dispatch for %s: %w", key, err)
		}
	}
	list, err := b.outbox(&eff)
	if err != nil {
		return fmt.Errorf("dispatch for %s: %w", key, err)
	}
	if err := b.storeAll(ctx, list); err != nil {
		return fmt.Errorf("dispatch for %s: %w", key, err)
	}
	if len(eff.Cancels) == 0 && len(eff.ReleasedTasks) == 0 && !eff.Ended {
		return nil
	}
	return b.control(Control{To: key, Cancels: eff.Cancels, Released: eff.ReleasedTasks, Ended: eff.Ended})
}

// forget removes an ended intent's commands and timers.
func (b *Bus) forget(ctx context.Context, key forge.Key) error {
	var done struct{}
	for _, filter := range commandsOf(key) {
		if err := b.api(ctx, "STREAM.PURGE."+streamCommands, map[string]string{"filter": filter}, &done); err != nil {
			return err
		}
	}
	return b.api(ctx, "STREAM.PURGE."+streamWakes, map[string]string{"filter": timersOf(key, "*")}, &done)
}

// outbox returns the messages that effects become.
func (b *Bus) outbox(eff *forge.Effects) ([]*nats.Msg, error) {
	list := make([]*nats.Msg, 0, len(eff.Commands)+len(eff.Timers)+len(eff.Outbox))
	add := func(m *nats.Msg, err error) error {
		list = append(list, m)
		return err
	}
	for i := range eff.Commands {
		if err := add(b.commandMessage(&eff.Commands[i])); err != nil {
			return nil, fmt.Errorf("command %s: %w", eff.Commands[i].ID(), err)
		}
	}
	for i := range eff.Timers {
		if err := add(b.timerMessage(&eff.Timers[i])); err != nil {
			return nil, fmt.Errorf("timer %q: %w", eff.Timers[i].Key, err)
		}
	}
	for i := range eff.Outbox {
		if err := add(b.wakeMessage(&eff.Outbox[i])); err != nil {
			return nil, fmt.Errorf("event %q: %w", eff.Outbox[i].ID, err)
		}
	}
	return list, nil
}

func (b *Bus) commandMessage(c *forge.Command) (*nats.Msg, error) {
	subject, err := commandSubject(c)
	if err != nil {
		return nil, err
	}
	data, err := commands.Marshal(c)
	if err != nil {
		return nil, err
	}
	m, err := b.message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	}
	return m, err
}

// timerMessage is a schedule: at its time, the server puts its payload on the
// machine's wake subject.
func (b *Bus) timerMessage(t *forge.Timer) (*nats.Msg, error) {
	subject, err := timerSubject(t)
	if err != nil {
		return nil, err
	}
	target, err := wakeSubject(t.To)
	if err != nil {
		return nil, err
	}
	at := t.At.UTC().Format(time.RFC3339Nano)
	data, err := events.Marshal(&forge.Event{
		ID: "timer/" + t.To.String() + "/" + t.Key + "/" + at, To: t.To, Message: &forge.TimerFired{Key: t.Key, At: t.At},
	})
	if err != nil {
		return nil, err
	}
	m, err := b.message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.ScheduleHeader, "@at "+at)
		m.Header.Set(jetstream.ScheduleTargetHeader, target)
	}
	return m, err
}

func (b *Bus) wakeMessage(ev *forge.Event) (*nats.Msg, error) {
	subject, err := wakeSubject(ev.To)
	if err != nil {
		return nil, err
	}
	data, err := events.Marshal(ev)
	if err != nil {
		return nil, err
	}
	return b.message(subject, data)
}

// storeAll publishes all messages at once and waits for all to be stored. One
// that must be the first on its subject, and is not, is stored already.
func (b *Bus) storeAll(ctx context.Context, list []*nats.Msg) error {
	futures := make([]jetstream.PubAckFuture, 0, len(list))
	var errs []error
	for _, m := range list {
		f, err := b.js.PublishMsgAsync(m, jetstream.WithStallWait(requestTimeout))
		if err != nil {
			errs = append(errs, fmt.Errorf("publish on %s: %w", m.Subject, err))
			break
		}
		futures = append(futures, f)
	}
	for _, f := range futures {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			if _, settled := wrongSequence(err); settled {
				err = b.taken(ctx, f.Msg())
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

// taken looks at what is on a command's subject already. That is the command
// itself; garbage, which no worker can take, makes way for it.
func (b *Bus) taken(ctx context.Context, m *nats.Msg) error {
	there, err := b.last(ctx, streamCommands, m.Subject)
	if errors.Is(err, ErrNotFound) {
		return nil // the intent ended meanwhile
	}
	if err != nil {
		return err
	}
	_, err = parseCommand(there.Subject, there.Data)
	if _, ok := errors.AsType[*GarbageError](err); !ok {
		return nil
	}
	m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprint(there.Seq))
	_, err = b.publish(ctx, m)
	if refused, _ := wrongSequence(err); refused { // another runner was faster
		return nil
	}
	return err
}
