package runner

import (
	"context"
	"sync"

	"github.com/pfl-forge/pfl-forge/notify"
)

// startNotifying publishes the changes of intents, and notifies people of them, until
// finish is called, which waits until everything that was decided before is
// published. Errors are only logged: decisions go on without it.
func startNotifying(ctx context.Context, cfg *Config) (finish func()) {
	ctx = context.WithoutCancel(ctx)
	notifying := func() {}
	if cfg.Notify != nil && len(cfg.Notify.Targets) > 0 {
		n := &notify.Notifier{Bus: cfg.Bus, Log: cfg.Log, Config: cfg.Notify}
		if err := n.Prepare(ctx); err != nil {
			cfg.Log.ErrorContext(ctx, "no notifications are sent until the next start", "error", err)
		} else {
			notifying = until(ctx, n.Run)
		}
	}
	publishing := until(ctx, cfg.Bus.Changes.Publish)
	return func() {
		publishing()
		notifying()
	}
}

// until runs f in the background until finish is called, which waits for its end.
func until(ctx context.Context, f func(context.Context)) (finish func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
