package live

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// Control tells the workers that have an intent's checkouts and agents which of
// them are not needed any more. It is not stored: a worker that misses it finds
// out by Wanted.
type Control struct {
	// To is the intent.
	To forge.Key
	// Cancels are running attempts whose results are not wanted.
	Cancels []forge.Attempt
	// Released are tasks whose checkouts are not needed.
	Released []forge.TaskID
	// Ended says that the intent's run is over, so that nothing of it is
	// needed.
	Ended bool
}

// Messages sends and follows messages that are not stored: a process that is
// not connected misses them. It is safe for concurrent use.
type Messages struct {
	conn *conn.Conn
}

// New returns the Messages of a connection.
func New(c *conn.Conn) *Messages {
	return &Messages{conn: c}
}

// controls translates Control, which only this package sends.
var controls = codec.Must[Control](&forgev1.Control{})

// Progress tells all who watch how an attempt goes. It does not wait for them;
// an error only says that the message is wrong or the bus closed.
func (l *Messages) Progress(p forge.Progress) error {
	subject, err := subjects.Progress(p.To)
	if err != nil {
		return fmt.Errorf("publish progress: %w", err)
	}
	return publishLive(l.conn, subject, wire.Progress, &p)
}

// FollowProgress calls do with the progress of a project's attempts, or of all
// projects if it is empty, from when it returns until ctx ends.
func (l *Messages) FollowProgress(ctx context.Context, project forge.ProjectID, do func(forge.Progress)) error {
	subject, err := subjects.ProgressIn(project)
	if err != nil {
		return fmt.Errorf("follow progress: %w", err)
	}
	return followLive(ctx, l.conn, subject, wire.Progress, do)
}

// FollowControl calls do with the Control messages of all projects, from when
// it returns until ctx ends.
func (l *Messages) FollowControl(ctx context.Context, do func(Control)) error {
	return followLive(ctx, l.conn, "forge.control.*.*", controls, do)
}

// Control sends a Control to all workers.
func (l *Messages) Control(c Control) error {
	subject, err := subjects.Control(c.To)
	if err != nil {
		return err
	}
	return publishLive(l.conn, subject, controls, &c)
}

// publishLive sends a message to all who are subscribed just now.
func publishLive[T any](c *conn.Conn, subject string, of *codec.Codec[T], v *T) error {
	data, err := of.Marshal(v)
	if err != nil {
		return err
	}
	if err := c.NC.Publish(subject, data); err != nil {
		return fmt.Errorf("publish on %s: %w", subject, err)
	}
	return nil
}

// followLive calls do with the messages of one type.
func followLive[T any](ctx context.Context, c *conn.Conn, subject string, of *codec.Codec[T], do func(T)) error {
	return follow(ctx, c, subject, func(m *nats.Msg) error {
		v, err := of.Unmarshal(m.Data)
		if err == nil {
			do(v)
		}
		return err
	})
}

// follow gives messages to take, one after the other, from when it returns, that
// is when the server knows of it, until ctx ends. A message that take cannot read
// is logged and left out. Where the connection is lost meanwhile, the server is
// told of it by the next one, and before that there is nothing to hear.
func follow(ctx context.Context, c *conn.Conn, subject string, take func(*nats.Msg) error) error {
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		if err := take(m); err != nil {
			c.Log.WarnContext(ctx, "ignored a live message", "subject", m.Subject, "error", err)
		}
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	flush, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	err = c.NC.FlushWithContext(flush)
	lost := errors.Is(err, nats.ErrConnectionClosed) && !c.NC.IsClosed() || errors.Is(err, context.DeadlineExceeded) && !c.NC.IsConnected()
	if err != nil && !lost {
		_ = sub.Unsubscribe()
		return fmt.Errorf("follow %s: %w", subject, err)
	}
	return nil
}
