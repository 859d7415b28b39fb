package bus_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// commandsStored returns how many commands the server holds.
func commandsStored(ctx context.Context, t testing.TB, nc *nats.Conn) int {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(ctx, "FORGE_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter("forge.command.>"))
	if err != nil {
		t.Fatal(err)
	}
	return len(info.State.Subjects)
}

// TestCommandsGo checks that a command is gone when its worker is done with it, not
// before, and that one whose intent has ended goes although nobody took it.
func TestCommandsGo(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b, nc := s.Connect(t), raw(t, s)
	own, lost := command(2), command(3)
	own.Replica, lost.Replica = "a", "gone"
	dispatch(t, b, command(1), own, lost)
	started, finish := make(chan struct{}, 2), make(chan struct{})
	consume(t, b, work.Config{Parallel: 2}, func(context.Context, *work.Job) error {
		started <- struct{}{}
		<-finish
		return nil
	})
	wait.For(t, started)
	wait.For(t, started)
	dispatch(t, b, command(1), own) // a command that is being carried out is still there
	if n := commandsStored(ctx, t, nc); n != 3 {
		t.Errorf("%d commands are stored", n)
	}
	close(finish)
	wait.Until(t, "one command is stored", func() bool { return commandsStored(ctx, t, nc) == 1 })
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Ended: true}); err != nil {
		t.Fatal(err)
	}
	if n := commandsStored(ctx, t, nc); n != 0 {
		t.Errorf("%d commands are left of an intent that has ended", n)
	}
	if len(started) > 0 {
		t.Error("a command came twice")
	}
}

// TestNoPause checks that commands which come while the client asks for the one before
// are asked for as well: a pause would be of two seconds, until the client misses a heartbeat.
func TestNoPause(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // more threads than processors: any of them may be held up
	ctx := t.Context()
	s := bustest.StartServer(t)
	b, js := s.Connect(t), jetStream(t, raw(t, s))
	all := int64(testsize.Of(1500, 5000))
	var dispatched, taken atomic.Int64
	consume(t, b, work.Config{Parallel: 64}, func(context.Context, *work.Job) error {
		taken.Add(1)
		return nil
	})
	go func() {
		for dispatched.Load() < all && b.Effects.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{command(int(dispatched.Load()) + 1)}}) == nil {
			dispatched.Add(1)
		}
	}()
	// A busy machine may stand still for seconds. So looks are counted, which then stand
	// still too, and only those at which the server says that nobody wants the commands that
	// it has: a worker that is slow asks in between.
	const looks = 60 // some 1.6 seconds: less than the client's own pause
	last, still := int64(0), 0
	wait.Moving(t, "all commands are taken", func() bool {
		n := taken.Load()
		if still++; n > last || n == dispatched.Load() || !unasked(ctx, t, js) {
			last, still = n, 0
		}
		if still > looks {
			t.Fatalf("of %d commands, %d are taken, and nobody asks for the others", dispatched.Load(), n)
		}
		return n == all
	}, taken.Load)
}

// unasked reports whether the server has commands that no worker asks for.
func unasked(ctx context.Context, t *testing.T, js jetstream.JetStream) bool {
	t.Helper()
	stream, err := js.Stream(ctx, "FORGE_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for info := range stream.ListConsumers(ctx).Info() { // to the end: what lists them would be held up
		found = found || info.NumPending > 0 && info.NumWaiting == 0
	}
	return found
}
