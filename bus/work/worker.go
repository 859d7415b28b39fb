package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// worker is the state of one Consume.
type worker struct {
	commands *Commands
	cfg      Config
	handle   func(context.Context, *Job) error
	// slots has room for the commands that are carried out at the same time.
	slots   chan struct{}
	running sync.WaitGroup
	// untaken is closed when no command comes here any more.
	untaken chan struct{}
}

// takeShared starts a command that any replica may take, and returns when there
// is room for another one: a command that has to wait here could run elsewhere.
func (w *worker) takeShared(ctx context.Context, stop <-chan struct{}, m jetstream.Msg) {
	select {
	case w.slots <- struct{}{}:
		w.start(ctx, m)
	default: // the last slot went to a command for this replica
		_ = m.Nak()
	}
	select {
	case w.slots <- struct{}{}:
		<-w.slots
	case <-stop:
	}
}

// takeOwn starts a command that this replica alone may take, and holds on to it
// until there is room.
func (w *worker) takeOwn(ctx context.Context, stop <-chan struct{}, m jetstream.Msg) {
	defer conn.Hold(ctx, w.commands.conn, m)()
	select {
	case w.slots <- struct{}{}:
		w.start(ctx, m)
	case <-stop:
		_ = m.Nak()
	}
}

// start carries out a command. The caller has taken a slot, which is free again
// at the end.
func (w *worker) start(ctx context.Context, m jetstream.Msg) {
	w.running.Go(func() {
		free := sync.OnceFunc(func() { <-w.slots })
		defer free()
		cmd, err := wire.ReadCommand(m)
		ctx := logging.Attempt(ctx, cmd.To, cmd.Attempt) // also of one that is unreadable, as far as its subject says
		if err != nil {
			w.unreadable(ctx, m, cmd, err)
			return
		}
		release := conn.Hold(ctx, w.commands.conn, m)
		err = w.call(ctx, m, cmd, free)
		release()
		w.acknowledge(ctx, m, cmd, err)
	})
}

// call calls the handler, and turns a panic into an error.
func (w *worker) call(ctx context.Context, m jetstream.Msg, cmd forge.Command, free func()) (err error) {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			w.commands.conn.Log.ErrorContext(ctx, "the handler of a command panics", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	issued, err := time.Parse(time.RFC3339Nano, m.Headers().Get(wire.HeaderIssued))
	if err != nil { // it did not have to wait for its turn
		issued = meta.Timestamp
	}
	return w.handle(ctx, &Job{Command: cmd, Attempt: int(meta.NumDelivered), IssuedAt: issued, commands: w.commands, ack: m.Reply(), free: free})
}

// acknowledge acknowledges a command by its outcome. Where that fails, the server delivers
// the command again.
func (w *worker) acknowledge(work context.Context, m jetstream.Msg, cmd forge.Command, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), conn.RequestTimeout)
	defer cancel()
	var retry *conn.RetryError
	var terminate *conn.TerminateError
	switch {
	case err == nil:
		err = m.Ack() // should it get lost, the command comes again and is not wanted
	case errors.Is(err, ErrLeaseLost):
		return // another replica may have it; if not, the server finds that out
	case errors.As(err, &retry):
		w.commands.conn.Log.Log(ctx, often(m), "a command has to wait", "error", err)
		err = conn.Again(m, retry.After)
	case work.Err() != nil:
		<-w.untaken // before that the server could send it here again
		err = m.Nak()
	case errors.As(err, &terminate):
		err = w.fail(ctx, m, cmd, terminate.Reason)
	default:
		w.commands.conn.Log.WarnContext(ctx, "a command could not be carried out; it comes again", "error", err)
		err = conn.Again(m, time.Second)
	}
	if err != nil {
		w.commands.conn.Log.WarnContext(ctx, "cannot acknowledge a command; it is delivered again", "error", err)
	}
}

// often returns the level at which it is logged that a command waits: one that
// does all night is told ever less often.
func often(m jetstream.Msg) slog.Level {
	if meta, err := m.Metadata(); err == nil && meta.NumDelivered&(meta.NumDelivered-1) != 0 {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// unreadable settles a message that is no command: one of a newer version
// waits, another fails. said is as much of the command as its subject says.
func (w *worker) unreadable(work context.Context, m jetstream.Msg, said forge.Command, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), conn.RequestTimeout)
	defer cancel()
	if _, ok := errors.AsType[*wire.UnknownError](err); ok {
		err = w.commands.conn.Park(ctx, streams.Commands, m, err)
	} else {
		// A result for an attempt that nobody waits for would stand in the way of the
		// real one.
		if wanted, e := w.commands.journal.Wanted(ctx, said.To, said.Attempt); e == nil && !wanted {
			said = forge.Command{}
		}
		err = w.fail(ctx, m, said, err.Error())
	}
	if err != nil {
		w.commands.conn.Log.WarnContext(ctx, "cannot put a command aside; it comes again", "subject", m.Subject(), "error", err)
	}
}

// fail ends a command that cannot be carried out. Its machine is told, because it
// would wait for ever.
func (w *worker) fail(ctx context.Context, m jetstream.Msg, said forge.Command, reason string) error {
	if said.To.Intent != "" {
		err := w.commands.results.Publish(ctx, forge.Result{
			To: said.To, Attempt: said.Attempt, Replica: w.cfg.Replica, StartedAt: time.Now().UTC(),
			Output: &forge.Failure{Reason: forge.FailCrashed, Message: "the command could not be carried out: " + reason},
		})
		if err != nil {
			return err
		}
	}
	return w.commands.conn.Terminate(ctx, streams.Commands, m, reason)
}
