package service

import (
	"context"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service/begun"
)

// noteBegun notes on the disk that an attempt begins, and returns what notes its end. Only what
// runs programs that an agent or the project chose, and is known to other replicas by its lease, is
// noted; a merge is not, whose outcome is a fact that the next delivery finds out.
func (a *attempt) noteBegun(h Handler) (end func()) {
	if a.held == nil || !h.Agent && h.Step != forge.StepRebase {
		return func() {}
	}
	return a.run.Outbox.running().Begin(a.cmd.To, a.cmd.Attempt, a.run.holder.Name(), a.killed())
}

// killed names the processes that were killed during the attempt, as its lease says, and the disk.
func (a *attempt) killed() []string {
	if a.held == nil {
		return nil
	}
	return a.run.Outbox.running().Killed(a.cmd.To, a.cmd.Attempt, a.held.Killed())
}

// alone waits until no other attempt runs here that was killed as often as this one, if once
// more is enough for it to be reported, and if it is not to be reported already: of all that
// ran beside the one that kills, none but that one is then taken for it. It is not ok if the
// service drains before; else the caller calls done when the attempt has ended.
func (a *attempt) alone() (done func(), ok bool) {
	if len(a.killed()) != begun.Most-1 {
		return func() {}, true
	}
	return a.run.suspects.release, a.run.suspects.acquire(a.run.ctx.Done())
}

// noteKilled tells other replicas, and the next delivery of the commands, during which attempts a
// former process of this replica was killed.
func (r *workerRun) noteKilled(ctx context.Context, wait *sync.WaitGroup) {
	r.Outbox.running().Tell(ctx, wait, r.recheck(), func(ctx context.Context, left *begun.Attempt) error {
		wanted, err := r.Bus.Journal.Wanted(ctx, left.To, left.Attempt)
		if err != nil || !wanted {
			return err
		}
		r.attempt(forge.Command{To: left.To, Attempt: left.Attempt}).log.WarnContext(ctx, "a former process was killed during an attempt", "killed", left.Killed)
		return r.Bus.Leases.NoteKilled(ctx, left.To, left.Attempt, r.holder, left.Killed...)
	})
}
