package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// forgetFollower is after how long a follower that is gone is forgotten: by then the
// changes that it missed are.
const forgetFollower = keepEvents

// FollowerConfig says who follows the changes of intents, and which.
type FollowerConfig struct {
	Name  string       // an id; under the same name a follower goes on where it was
	Whats []ChangeKind // empty: all
}

func (c FollowerConfig) source() (source, error) {
	if _, err := forge.ParseReplicaID(c.Name); err != nil {
		return source{}, fmt.Errorf("name of a follower: %w", err)
	}
	cfg := jetstream.ConsumerConfig{
		Durable:           c.Name,
		DeliverPolicy:     jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckExplicitPolicy,
		AckWait:           ackWait,
		MaxDeliver:        -1,
		MaxAckPending:     1000,
		InactiveThreshold: forgetFollower,
	}
	for _, what := range c.Whats {
		if !slices.Contains(ChangeKinds(), what) {
			return source{}, fmt.Errorf("%q is no change of an intent", what)
		}
		subject, err := publishedOf("", what)
		if err != nil {
			return source{}, err
		}
		cfg.FilterSubjects = append(cfg.FilterSubjects, subject)
	}
	return source{stream: streamEvents, config: cfg, ahead: 100}, nil
}

// AddFollower makes a follower known, so that it gets every change from now on, also
// while it is away.
func (b *Bus) AddFollower(ctx context.Context, cfg FollowerConfig) error {
	src, err := cfg.source()
	if err == nil {
		_, err = b.ensureConsumer(ctx, src)
	}
	if err != nil {
		return fmt.Errorf("add follower %s: %w", cfg.Name, err)
	}
	return nil
}

// FollowChanges gives a follower's changes to take, one after the other, until ctx
// ends. Several processes that follow under one name share them.
func (b *Bus) FollowChanges(ctx context.Context, cfg FollowerConfig, take func(*DeliveredChange)) error {
	src, err := cfg.source()
	if err != nil {
		return fmt.Errorf("follow changes: %w", err)
	}
	b.pull(ctx, src, func(m jetstream.Msg) {
		t, err := readTold(m)
		if err != nil {
			if err := b.terminate(ctx, streamEvents, m, err.Error()); err != nil {
				b.log.Warn("cannot put a message aside; it comes again", "subject", m.Subject(), "error", err)
			}
			return
		}
		t.bus = b
		take(t)
	})
	return nil
}

// Behind returns how many changes a follower has not done with.
func (b *Bus) Behind(ctx context.Context, name string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cons, err := b.js.Consumer(ctx, streamEvents, name)
	if err != nil {
		return 0, fmt.Errorf("look for follower %s: %w", name, err)
	}
	info := cons.CachedInfo()
	return int(info.NumPending) + info.NumAckPending, nil
}

// DeliveredChange is a change that a follower got. It comes again unless Done or Drop is called
// within 30 seconds, or Hold.
type DeliveredChange struct {
	document.Change

	ID    string // the same whenever the change is told
	Kind  ChangeKind
	At    time.Time
	Event []byte // the CloudEvent, as it was published

	bus *Bus
	msg jetstream.Msg
}

func readTold(m jetstream.Msg) (*DeliveredChange, error) {
	var ev cloudEvent[document.Change]
	if err := json.Unmarshal(m.Data(), &ev); err != nil {
		return nil, fmt.Errorf("not a change of an intent: %w", err)
	}
	t := &DeliveredChange{ID: ev.ID, At: ev.Time, Change: ev.Data, Event: m.Data(), msg: m}
	key := forge.Key{Project: t.Project, Intent: t.Intent}
	for _, what := range ChangeKinds() {
		if s, err := publishedSubject(key, what); err == nil && s == m.Subject() {
			t.Kind = what
			return t, nil
		}
	}
	return nil, fmt.Errorf("it was sent to %s, but is about %s", m.Subject(), key)
}

// Done says that the change need not come again.
func (t *DeliveredChange) Done() error { return t.msg.Ack() }

// Hold says that the follower is at it for 30 more seconds.
func (t *DeliveredChange) Hold() error { return t.msg.InProgress() }

// Again has the change delivered again at once.
func (t *DeliveredChange) Again() error { return t.msg.Nak() }

// Drop puts the change among the dead letters.
func (t *DeliveredChange) Drop(ctx context.Context, reason string) error {
	return t.bus.terminate(ctx, streamEvents, t.msg, reason)
}
