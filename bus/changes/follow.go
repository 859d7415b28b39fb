package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/together"
)

// forgetFollower is the time after which the server forgets a follower that is
// gone: by then the changes that it missed are gone, too.
const forgetFollower = streams.KeepEvents

// followerWait is how long a follower has for a change before it comes again. Followers are
// programs of others: they wait for servers of theirs.
const followerWait = 30 * time.Second

// Follower says who follows the changes of intents, and which.
type Follower struct {
	// Name is an id of the form of a replica's. Under the same name a follower
	// goes on where it was, also after a restart, and several processes share
	// its changes.
	Name string
	// Whats lists the kinds to follow; empty means all.
	Whats []Kind
}

// Stream publishes changes of intents, and gives them to followers.
type Stream struct {
	conn *conn.Conn
	// looks has the looks at what is stored that are being taken.
	looks together.Group[Published]
}

// New returns the Stream of a connection.
func New(c *conn.Conn) *Stream {
	return &Stream{conn: c}
}

// source returns the durable consumer that a follower is on the server.
func (c Follower) source() (conn.Source, error) {
	if _, err := forge.ParseReplicaID(c.Name); err != nil {
		return conn.Source{}, fmt.Errorf("name of a follower: %w", err)
	}
	cfg := jetstream.ConsumerConfig{
		Durable:           c.Name,
		DeliverPolicy:     jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           followerWait,
		MaxDeliver:        -1,
		MaxAckPending:     1000,
		InactiveThreshold: forgetFollower,
	}
	for _, what := range c.Whats {
		if !slices.Contains(Kinds(), what) {
			return conn.Source{}, fmt.Errorf("%q is no change of an intent", what)
		}
		subject, err := subjects.Changes("", string(what))
		if err != nil {
			return conn.Source{}, err
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, subject)
	}
	return conn.Source{Stream: streams.Events, Config: cfg, Ahead: 100}, nil
}

// AddFollower makes a follower known, so that it gets every change from now on, also
// while it is away.
func (ch *Stream) AddFollower(ctx context.Context, cfg Follower) error {
	src, err := cfg.source()
	if err == nil {
		_, err = ch.conn.EnsureConsumer(ctx, src)
	}
	if err != nil {
		return fmt.Errorf("add follower %s: %w", cfg.Name, err)
	}
	return nil
}

// Follow calls take with a follower's changes, one after the other, until ctx
// ends. take returns at once or holds up the others, and settles each change by
// Done, Again or Drop, at any time. Messages that are no changes become dead
// letters.
func (ch *Stream) Follow(ctx context.Context, cfg Follower, take func(*Delivered)) error {
	src, err := cfg.source()
	if err != nil {
		return fmt.Errorf("follow changes: %w", err)
	}
	ch.conn.Pull(ctx, src, func(m jetstream.Msg) {
		t, err := readChange(m)
		if err != nil {
			if err := ch.conn.Terminate(ctx, streams.Events, m, err.Error()); err != nil {
				ch.conn.Log.WarnContext(ctx, "cannot put a message aside; it comes again", "subject", m.Subject(), "error", err)
			}
			return
		}
		t.conn = ch.conn
		take(t)
	})
	return nil
}

// Behind returns how many changes a follower has not acknowledged: the delivered
// ones, and those still in the stream.
func (ch *Stream) Behind(ctx context.Context, name string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	cons, err := ch.conn.JS.Consumer(ctx, streams.Events, name)
	if err != nil {
		return 0, fmt.Errorf("look for follower %s: %w", name, err)
	}
	info := cons.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

// Delivered is a change that a follower got. It comes again unless Done or Drop
// is called within 30 seconds, or Hold.
type Delivered struct {
	document.Change

	// ID is that of the CloudEvent, the same whenever the change is delivered.
	ID   string
	Kind Kind
	// Event is the CloudEvent as it was published, as JSON.
	Event []byte

	conn *conn.Conn
	msg  jetstream.Msg
}

// readChange reads a published change, and refuses one whose subject says
// otherwise.
func readChange(m jetstream.Msg) (*Delivered, error) {
	var ev CloudEvent[document.Change]
	if err := json.Unmarshal(m.Data(), &ev); err != nil {
		return nil, fmt.Errorf("not a change of an intent: %w", err)
	}
	t := &Delivered{ID: ev.ID, Change: ev.Data, Event: m.Data(), msg: m}
	key := forge.Key{Project: t.Project, Intent: t.Intent}
	for _, what := range Kinds() {
		if s, err := subjects.Change(key, string(what)); err == nil && s == m.Subject() {
			t.Kind = what
			return t, nil
		}
	}
	return nil, fmt.Errorf("it was sent to %s, but is about %s", m.Subject(), key)
}

// Done says that the change need not come again.
func (t *Delivered) Done() error { return t.msg.Ack() }

// Hold says that the follower is at it for 30 more seconds.
func (t *Delivered) Hold() error { return t.msg.InProgress() }

// Again has the change delivered again at once.
func (t *Delivered) Again() error { return t.msg.Nak() }

// Drop puts the change among the dead letters.
func (t *Delivered) Drop(ctx context.Context, reason string) error {
	return t.conn.Terminate(ctx, streams.Events, t.msg, reason)
}
