package service

import (
	"context"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// patience is the number of consecutive looks at which a command that is addressed to
// another replica must be unattended before this one adopts it. By then a runner has
// given it to others if it was not begun, so what is left was begun by a replica that
// is gone.
const patience = 4

// adopt takes over, until ctx ends, the attempts that a replica began before it went
// away for good. Only handlers that call an agent are concerned, and only where
// replicas share commands.
func (r *workerRun) adopt(ctx context.Context, h Handler) {
	if !h.Agent || !r.Shared {
		return
	}
	var adopted sync.WaitGroup
	defer adopted.Wait()
	seen := map[string]int{}
	t := time.NewTicker(r.recheck())
	defer t.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-t.C:
		}
		list, err := r.Bus.Commands.Unattended(ctx, h.Step, r.Replica)
		if err != nil {
			r.Log.DebugContext(ctx, "cannot look for commands without a worker", "error", err)
			continue
		}
		now := map[string]int{}
		for _, job := range list {
			if r.Hold != nil && r.Hold(&job.Command) != nil {
				continue // nor could it begin here, such as one of another group's project
			}
			id := job.Command.ID()
			now[id] = seen[id] + 1
			if now[id] == patience {
				adopted.Go(func() { r.adoptOne(ctx, h, job) })
			}
		}
		seen = now
	}
}

// adoptOne carries out one adopted command.
func (r *workerRun) adoptOne(ctx context.Context, h Handler, job *work.Job) {
	log := r.attempt(job.Command).log
	ctx = logging.Attempt(ctx, job.Command.To, job.Command.Attempt)
	log.WarnContext(ctx, "take over what another replica has begun", "from", string(job.Command.Replica))
	if err := r.take(ctx, h, job); err != nil {
		log.WarnContext(ctx, "cannot do what another replica has begun", "error", err)
	}
}
