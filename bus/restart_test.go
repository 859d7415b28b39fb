package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestRestart restarts the server under a runner and a worker. The streams in
// memory are gone; Guard notices, and everybody goes on.
func TestRestart(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	seen := collect(t, b)
	jobs := make(chan int, 100)
	consume(t, s.Connect(t), work.Config{}, func(_ context.Context, j *work.Job) error {
		jobs <- j.Command.Attempt.Number
		return nil
	})
	var pending atomic.Int32
	rebuilt := make(chan struct{}, 100)
	guarding, stop := context.WithCancel(ctx)
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		b.Guard(guarding, func(ctx context.Context) error {
			n := pending.Add(1)
			if n == 2 {
				return errors.New("not yet") // it is called again
			}
			rebuilt <- struct{}{}
			note := forge.Event{ID: "enter", To: key.ProjectKey(), Message: &forge.AdmitRun{Run: int(n)}}
			return b.Effects.Dispatch(ctx, key, forge.Effects{
				Commands: []forge.Command{command(int(n))}, Outbox: []forge.Event{note},
			})
		})
	}()
	defer func() { stop(); <-guarded }()
	wait.For(t, rebuilt)
	if got := wait.For(t, jobs); got != 1 {
		t.Errorf("took command %d", got)
	}
	ev := wait.For(t, seen)
	if admit := forge.As[*forge.AdmitRun](ev.Message); admit == nil || admit.Run != 1 {
		t.Errorf("got %+v", ev)
	}
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Fatal(err)
	}
	restarted := time.Now()
	s.Restart(t)
	wait.For(t, rebuilt)
	if d := time.Since(restarted); d < bus.HeldResults {
		t.Errorf("the commands are dispatched again after %v, before workers had the time to tell what they finished", d)
	}
	if got := wait.For(t, jobs); got != 3 {
		t.Errorf("took command %d", got)
	}
	ev = wait.For(t, seen)
	if admit := forge.As[*forge.AdmitRun](ev.Message); admit == nil || admit.Run != 3 {
		t.Errorf("got %+v", ev)
	}
	if recs, seq, err := b.Journal.Load(ctx, key); err != nil || len(recs) != 1 || seq.Seq != 1 {
		t.Errorf("the journal has %d records up to %v, %v", len(recs), seq, err)
	}
	if err := b.Results.Publish(ctx, result(1, "a")); err != nil {
		t.Fatal(err)
	}
	if ev := wait.For(t, seen); forge.As[*forge.Result](ev.Message) == nil {
		t.Errorf("got %+v", ev)
	}
}

// TestStreamsGone checks that a stream that somebody deleted is made again, and
// that readiness tells meanwhile.
func TestStreamsGone(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	js := jetStream(t, raw(t, s))
	seen := collect(t, b)
	wait.Until(t, "a runner decides", func() bool { return b.Events.Ready(ctx) == nil })
	rebuilt, hold := make(chan struct{}, 100), make(chan struct{})
	guarding, stop := context.WithCancel(ctx)
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		b.Guard(guarding, func(context.Context) error {
			rebuilt <- struct{}{}
			<-hold
			return nil
		})
	}()
	defer func() { stop(); <-guarded }()
	wait.For(t, rebuilt)
	for _, name := range []string{"FORGE_DEAD", "FORGE_INTENTS"} {
		if err := js.DeleteStream(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Events.Ready(ctx); err == nil {
		t.Error("events reach a runner through a stream that is gone")
	}
	close(hold)
	wait.For(t, rebuilt)
	wait.Until(t, "a runner decides", func() bool { return b.Events.Ready(ctx) == nil })
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	if ev := wait.For(t, seen); forge.As[*forge.Submit](ev.Message) == nil {
		t.Errorf("got %+v", ev)
	}
	if _, err := b.Dead(ctx); err != nil {
		t.Error(err)
	}
}

// TestSendWhileDown checks that what is sent without a server is taken as soon as
// there is one.
func TestSendWhileDown(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	s.Stop()
	sent := make(chan error, 2)
	go func() { sent <- b.Submissions.Send(ctx, submit(key)) }()
	go func() { sent <- b.Results.Publish(ctx, result(1, "a")) }()
	s.Start(t)
	seen := collect(t, b)
	for range 2 {
		if err := wait.For(t, sent); err != nil {
			t.Error(err)
		}
	}
	wait.For(t, seen)
	wait.For(t, seen)
}

func TestConnectWaits(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Stop()
	connected := make(chan error, 1)
	go func() {
		b, err := bus.Connect(wait.Context(t), bus.Config{URL: s.URL()})
		if err == nil {
			b.Close()
		}
		connected <- err
	}()
	s.Start(t)
	if err := wait.For(t, connected); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.Stop()
	if _, err := bus.Connect(ended, bus.Config{URL: s.URL()}); err == nil {
		t.Error("connected to nothing")
	}
}

// TestEnsure checks that streams are made once, and changed when they differ.
func TestEnsure(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Fatal(err)
	}
	js := jetStream(t, raw(t, s))
	before := configs(t, js)
	changed := before["FORGE_INTENTS"]
	changed.MaxAge, changed.MaxBytes, changed.Duplicates = 1e12, 1e7, 1e9
	if _, err := js.UpdateStream(ctx, changed); err != nil {
		t.Fatal(err)
	}
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	after := configs(t, js)
	if after["FORGE_INTENTS"].MaxBytes != 1e7 {
		t.Error("a limit that an operator set is gone")
	}
	if after["FORGE_INTENTS"].MaxAge != before["FORGE_INTENTS"].MaxAge || after["FORGE_INTENTS"].Duplicates != before["FORGE_INTENTS"].Duplicates {
		t.Errorf("the stream stayed as it was: %+v", after["FORGE_INTENTS"])
	}
	if recs, _, err := b.Journal.Load(ctx, key); err != nil || len(recs) != 1 {
		t.Errorf("the journal has %d records, %v", len(recs), err)
	}
}

func jetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// configs returns the config of every stream.
func configs(t testing.TB, js jetstream.JetStream) map[string]jetstream.StreamConfig {
	t.Helper()
	all := map[string]jetstream.StreamConfig{}
	list := js.ListStreams(wait.Context(t))
	for info := range list.Info() {
		all[info.Config.Name] = info.Config
	}
	if list.Err() != nil {
		t.Fatal(list.Err())
	}
	return all
}
