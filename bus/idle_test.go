package bus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// An event that a runner took and never finished keeps the bus from being idle, and
// is delivered again at once when somebody says that no runner is left.
func TestIdleAndReclaim(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	if idle, err := b.Events.Idle(t.Context()); idle || err != nil {
		t.Fatalf("before any runner: %t, %v", idle, err)
	}
	if err := b.Events.Reclaim(t.Context()); err != nil {
		t.Fatalf("before any runner: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	stuck, taken := make(chan struct{}), make(chan struct{}, 10)
	release := sync.OnceFunc(func() { close(stuck) })
	var deliveries atomic.Int32
	var consumers sync.WaitGroup
	consumers.Go(func() {
		b.Events.Consume(ctx, decide.Config{Timeout: time.Minute}, func(context.Context, *decide.Delivery) error {
			taken <- struct{}{}
			if deliveries.Add(1) == 1 {
				<-stuck
			}
			return nil
		})
	})
	defer consumers.Wait()
	defer cancel()
	defer release()
	awaitIdle(t, b)

	note := forge.Event{ID: "enter", To: key.ProjectKey(), Message: &forge.AdmitRun{Run: 1}}
	if err := b.Effects.Dispatch(t.Context(), key, forge.Effects{Outbox: []forge.Event{note}}); err != nil {
		t.Fatal(err)
	}
	<-taken
	if idle, err := b.Events.Idle(t.Context()); idle || err != nil {
		t.Fatalf("while an event is being handled: %t, %v", idle, err)
	}
	if err := b.Events.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait.For(t, taken) // it is delivered again
	awaitIdle(t, b)
}

func awaitIdle(t *testing.T, b *bus.Bus) {
	t.Helper()
	wait.Until(t, "the bus is idle", func() bool {
		idle, err := b.Events.Idle(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return idle
	})
}
