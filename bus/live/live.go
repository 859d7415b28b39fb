package live

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// Control tells the workers that have an intent's checkouts and agents what is
// not needed any more. It is not stored: who was not there asks Wanted.
type Control struct {
	To       forge.Key
	Cancels  []forge.Attempt // running attempts whose results are not wanted
	Released []forge.TaskID  // tasks whose checkouts are not needed
	Ended    bool            // the intent's run is over
}

// Messages sends and follows messages that are not stored: who is not connected misses them.
type Messages struct {
	conn *conn.Conn
}

// New returns the Live of a connection.
func New(c *conn.Conn) *Messages {
	return &Messages{conn: c}
}

var controls = codec.Must[Control](&forgev1.Control{})

// Progress tells everybody who watches how an attempt goes. It is not stored;
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

// FollowControl calls do with what workers are told, of all projects, from when
// it returns until ctx ends.
func (l *Messages) FollowControl(ctx context.Context, do func(Control)) error {
	return followLive(ctx, l.conn, "forge.control.*.*", controls, do)
}

// Control tells the workers that have an intent's checkouts what is not needed any more.
func (l *Messages) Control(c Control) error {
	subject, err := subjects.Control(c.To)
	if err != nil {
		return err
	}
	return publishLive(l.conn, subject, controls, &c)
}

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

func followLive[T any](ctx context.Context, c *conn.Conn, subject string, of *codec.Codec[T], do func(T)) error {
	sub, err := c.NC.Subscribe(subject, func(m *nats.Msg) {
		v, err := of.Unmarshal(m.Data)
		if err != nil {
			c.Log.Warn("ignored a live message", "subject", m.Subject, "error", err)
			return
		}
		do(v)
	})
	if err != nil {
		return fmt.Errorf("follow %s: %w", subject, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() })
	flush, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	if err := c.NC.FlushWithContext(flush); err != nil {
		_ = sub.Unsubscribe()
		return fmt.Errorf("follow %s: %w", subject, err)
	}
	return nil
}
