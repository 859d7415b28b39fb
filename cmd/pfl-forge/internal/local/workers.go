package local

import (
	"context"
	"sync"
)

// startWorkers starts the workers of every step.
func (r *run) startWorkers(ctx context.Context, running *sync.WaitGroup) error {
	return nil
}
