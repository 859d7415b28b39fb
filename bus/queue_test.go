package bus_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
)

// commandsStored returns how many commands the server holds, and how it keeps them.
func commandsStored(ctx context.Context, t testing.TB, nc *nats.Conn) (int, jetstream.RetentionPolicy) {
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
	return len(info.State.Subjects), info.Config.Retention
}

// TestCommandsGo checks that a command is gone when its worker is done with it, not
// before, and that one whose intent has ended goes although nobody took it.
func TestCommandsGo(t *testing.T) {
	ctx := within(t)
	s := bustest.StartServer(t)
	b, nc := s.Connect(t), raw(t, s)
	own, lost := command(2), command(3)
	own.Replica, lost.Replica = "a", "gone"
	dispatch(t, b, command(1), own, lost)
	started, finish := make(chan struct{}, 2), make(chan struct{})
	work(t, b, bus.WorkConfig{Parallel: 2}, func(context.Context, *bus.Job) error {
		started <- struct{}{}
		<-finish
		return nil
	})
	receive(ctx, t, started)
	receive(ctx, t, started)
	dispatch(t, b, command(1), own) // a command that is being carried out is still there
	if n, _ := commandsStored(ctx, t, nc); n != 3 {
		t.Errorf("%d commands are stored", n)
	}
	close(finish)
	poll(ctx, t, func() bool { n, _ := commandsStored(ctx, t, nc); return n == 1 })
	if err := b.Dispatch(ctx, key, forge.Effects{Ended: true}); err != nil {
		t.Fatal(err)
	}
	if n, _ := commandsStored(ctx, t, nc); n != 0 {
		t.Errorf("%d commands are left of an intent that has ended", n)
	}
	if len(started) > 0 {
		t.Error("a command came twice")
	}
}

// TestNoPause checks that commands which come while the client asks for the one before
// are asked for as well: a pause would be of two seconds.
func TestNoPause(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // more threads than processors: any of them may be held up
	ctx := within(t)
	b := bustest.Start(t)
	const n = 5000
	taken := make(chan time.Time, n)
	work(t, b, bus.WorkConfig{Parallel: 64}, func(context.Context, *bus.Job) error {
		taken <- time.Now()
		return nil
	})
	go func() {
		for i := range n {
			if b.Dispatch(ctx, key, forge.Effects{Commands: []forge.Command{command(i + 1)}}) != nil {
				return
			}
		}
	}()
	last := receive(ctx, t, taken)
	for range n - 1 {
		at := receive(ctx, t, taken)
		if pause := at.Sub(last); pause > 1900*time.Millisecond {
			t.Errorf("nothing for %v", pause)
		}
		last = at
	}
}
