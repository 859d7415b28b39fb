package decide

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/internal/alive"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDecisionThatStandsStill: a handler that does not end, though its time is over, is
// noticed. One that waits for a server that is away ends in time, and is not.
func TestDecisionThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := conn.New(nil, 1)
		c.Alive = &alive.Watch{}
		release := make(chan struct{})
		blocked := func(context.Context, *Delivery) error { <-release; return context.Canceled }
		away := func(ctx context.Context, _ *Delivery) error { <-ctx.Done(); return ctx.Err() }
		consumers := func(handle func(context.Context, *Delivery) error) *eventConsumers {
			return &eventConsumers{events: &Events{conn: c}, cfg: Config{Timeout: 20 * time.Second}, handle: handle}
		}
		for range 10 { // the server stays away
			if err := consumers(away).call(t.Context(), &Delivery{}); err == nil {
				t.Error("no error")
			}
			if err := c.Alive.Stuck(); err != nil {
				t.Error(err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = consumers(blocked).call(t.Context(), &Delivery{})
		}()
		<-wait.Briefly(t, alive.Patience+time.Second).Done()
		if err := c.Alive.Stuck(); err == nil || err.Error() != "stands still: decision: 1 for up to 1m1s" {
			t.Errorf("got %v", err)
		}
		close(release)
		<-done
		if err := c.Alive.Stuck(); err != nil {
			t.Error(err)
		}
	})
}
