package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestGivenUp checks that what the server gives up, whoever consumed it, is
// among the dead letters.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	cons, err := jetStream(t, raw(t, s)).CreateConsumer(ctx, "FORGE_INTENTS", jetstream.ConsumerConfig{
		Durable: "other", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 10 * time.Millisecond, MaxDeliver: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		batch, err := cons.Fetch(1, jetstream.FetchMaxWait(20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for range batch.Messages() { // and nobody acknowledges
		}
		dead, err := b.Dead(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(dead) == 0 {
			continue
		}
		if d := dead[0]; d.Stream != "FORGE_INTENTS" || d.Seq != 1 || !strings.Contains(d.Reason, "given up after 2 deliveries") {
			t.Errorf("dead letter %+v", d)
		}
		return
	}
}

// TestWithdrawn checks that a command that is taken back while a worker is at it
// is no dead letter.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	dispatch(t, b, command(1))
	took, release := make(chan struct{}, 1), make(chan struct{})
	consume(t, b, work.Config{}, func(context.Context, *work.Job) error {
		took <- struct{}{}
		<-release
		return nil
	})
	defer close(release)
	wait.For(t, took)
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Ended: true}); err != nil {
		t.Fatal(err)
	}
	js := jetStream(t, raw(t, s))
	wait.Until(t, "the server tells of it", func() bool {
		dead, err := js.Stream(ctx, "FORGE_DEAD")
		return err == nil && dead.CachedInfo().State.Msgs == 1
	})
	if dead, err := b.Dead(ctx); err != nil || len(dead) > 0 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// TestCountDead: a runner counts the dead letters with its own permissions, and reads a bounded
// number of them, however many somebody has provoked.
func TestCountDead(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	if err := runner.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	var known bus.DeadCount
	counts := func(want int) {
		t.Helper()
		if n, err := runner.CountDead(ctx, &known); err != nil || n != want {
			t.Errorf("%d dead letters, %v; want %d", n, err, want)
		}
	}
	counts(0)
	admin, _ := as(t, s, "admin")
	js, next := jetStream(t, admin), 0
	die := func(n int) {
		t.Helper()
		for range n {
			next++
			if _, err := js.PublishAsync("forge.dead.intents.shop", fmt.Appendf(nil, `{"stream":"FORGE_INTENTS","stream_seq":%d,"reason":"x"}`, next)); err != nil {
				t.Fatal(err)
			}
		}
		wait.For(t, js.PublishAsyncComplete())
	}
	die(2)
	counts(2)
	counts(2)
	die(1500)
	counts(1000)
	if list, err := runner.Dead(ctx); err != nil || len(list) != 1502 {
		t.Errorf("a list of %d dead letters, %v", len(list), err)
	}
}
