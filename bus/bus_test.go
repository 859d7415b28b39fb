package bus_test

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var key = forge.Key{Project: "shop", Intent: "fix-login"}

func submit(k forge.Key) forge.Event {
	return forge.Event{ID: "submit-" + string(k.Intent), To: k, Message: &forge.Submit{Intent: forge.Intent{
		ID: k.Intent, Project: k.Project, Settings: forge.Settings{
			Title: "Fix the login",
		}, Source: forge.SourceHuman,
	}}}
}

// serve runs a runner until the test ends.
func serve(t testing.TB, b *bus.Bus, handle func(context.Context, *decide.Delivery) error) {
	t.Helper()
	serveWith(t, b, decide.Config{}, handle)
}

func serveWith(t testing.TB, b *bus.Bus, cfg decide.Config, handle func(context.Context, *decide.Delivery) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Events.Consume(ctx, cfg, handle)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestAsk(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	serve(t, b, func(ctx context.Context, d *decide.Delivery) error {
		d.Respond(ctx, forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied, Intent: d.Event.To.Intent})
		return nil
	})
	got, err := b.Submissions.Ask(ctx, submit(key))
	if err != nil {
		t.Fatal(err)
	}
	want := forge.Ruling{EventID: "submit-fix-login", Decision: forge.Applied, Intent: "fix-login"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestHealth checks what probes and a waiting command line ask for.
func TestHealth(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	if err := b.Ping(ctx); err != nil {
		t.Error(err)
	}
	if idle, err := b.Events.Idle(ctx); err != nil || idle {
		t.Errorf("without a runner it is idle: %v, %v", idle, err)
	}
	if err := b.Commands.Ready(ctx, forge.StepAnalyze, "", "a"); err == nil {
		t.Error("without a worker there is one")
	}
	stop := make(chan struct{})
	serve(t, b, func(context.Context, *decide.Delivery) error { <-stop; return nil })
	consume(t, b, work.Config{}, func(context.Context, *work.Job) error { return nil })
	wait.Until(t, "a worker is there", func() bool { return b.Commands.Ready(ctx, forge.StepAnalyze, "", "a") == nil })
	wait.Until(t, "the bus is idle", func() bool { idle, err := b.Events.Idle(ctx); return idle && err == nil })
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	if idle, err := b.Events.Idle(ctx); err != nil || idle {
		t.Errorf("with an event to decide on it is idle: %v, %v", idle, err)
	}
	close(stop)
	wait.Until(t, "the bus is idle", func() bool { idle, err := b.Events.Idle(ctx); return idle && err == nil })
}

func TestToken(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "secret", NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatal("the server is not ready")
	}
	b, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := b.Ping(ctx); err == nil {
		t.Error("a closed bus answers")
	}
	if err := b.Submissions.Send(ctx, submit(key)); err == nil {
		t.Error("a closed bus sends")
	}
	if _, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), Token: "wrong"}); err == nil || ctx.Err() != nil {
		t.Errorf("a wrong token: %v", err)
	}
	if _, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), NKey: "missing"}); err == nil {
		t.Error("connected with a key that is not there")
	}
}

// TestTokenChanges checks that a connection comes back when the server asks for
// another token, as soon as that can be read.
func TestTokenChanges(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: "old", NoLog: true, NoSigs: true}
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(wait.Patience) {
		t.Fatal("the server is not ready")
	}
	var token atomic.Value
	token.Store("old")
	asked := make(chan struct{}, 1000)
	b, err := bus.Connect(ctx, bus.Config{URL: s.ClientURL(), ReadToken: func() (string, error) {
		asked <- struct{}{}
		return token.Load().(string), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	changed := opts.Clone()
	changed.Port, changed.Authorization = s.Addr().(*net.TCPAddr).Port, "new"
	if err := s.ReloadOptions(changed); err != nil {
		t.Fatal(err)
	}
	for range 6 { // and is refused some times
		wait.For(t, asked)
	}
	token.Store("new")
	wait.Until(t, "the bus is connected again", func() bool { return b.Ping(ctx) == nil })
}

func BenchmarkAsk(b *testing.B) {
	bs := bustest.Start(b)
	serve(b, bs, func(ctx context.Context, d *decide.Delivery) error {
		d.Respond(ctx, forge.Ruling{Decision: forge.Applied})
		return nil
	})
	n := 0
	for b.Loop() {
		n++
		ev := submit(key)
		ev.ID = fmt.Sprint(n)
		if _, err := bs.Submissions.Ask(context.Background(), ev); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMain fails if a goroutine is left. A clock of the server, which runs while it has stores,
// was seen to stay after all servers were shut down on a busy machine: it is not ours to end.
func TestMain(m *testing.M) {
	wait.Beside()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"))
}
