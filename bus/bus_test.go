package bus_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
)

var key = forge.Key{Project: "shop", Intent: "fix-login"}

// within bounds a test: whatever it waits for comes at once, or not at all.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func submit(k forge.Key) forge.Event {
	return forge.Event{ID: "submit-" + string(k.Intent), To: k, Submit: &forge.Submit{Intent: forge.Intent{
		ID: k.Intent, Project: k.Project, Title: "Fix the login", Source: forge.SourceHuman,
	}}}
}

// serve runs a runner until the test ends.
func serve(t testing.TB, b *bus.Bus, handle func(context.Context, *bus.Delivery) error) {
	t.Helper()
	serveWith(t, b, bus.EventConfig{}, handle)
}

func serveWith(t testing.TB, b *bus.Bus, cfg bus.EventConfig, handle func(context.Context, *bus.Delivery) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.ConsumeEvents(ctx, cfg, handle)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func TestAsk(t *testing.T) {
	ctx := within(t)
	b := bustest.Start(t)
	serve(t, b, func(_ context.Context, d *bus.Delivery) error {
		d.Respond(forge.Ruling{EventID: d.Event.ID, Decision: forge.Applied, Intent: d.Event.To.Intent})
		return nil
	})
	got, err := b.Ask(ctx, submit(key))
	if err != nil {
		t.Fatal(err)
	}
	want := forge.Ruling{EventID: "submit-fix-login", Decision: forge.Applied, Intent: "fix-login"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
