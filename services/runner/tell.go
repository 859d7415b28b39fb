package runner

import (
	"context"
	"sync"

	"github.com/pfl-forge/pfl-forge/bus"
)

// tell publishes the changes of intents until what it returns is called, which waits
// until everything is told that was decided before.
func tell(ctx context.Context, b *bus.Bus) (finish func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { b.PublishChanges(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}
