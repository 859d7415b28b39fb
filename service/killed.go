package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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

// killed names the processes that were killed during the attempt, by its lease, and by
// what this replica has not told others yet.
func (a *attempt) killed() []string {
	names := a.held.Killed()
	a.run.mu.Lock()
	defer a.run.mu.Unlock()
	for _, left := range a.run.untold {
		same := left.Attempt
		if same.Claim = a.cmd.Attempt.Claim; left.To != a.cmd.To || same != a.cmd.Attempt {
			continue
		}
		for _, name := range left.Killed {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// alone waits until no other attempt runs here that was killed as often as this one, if once more
// is enough for it to be reported: of all that ran beside the one that kills, none but
// that one is then taken for it. It is not ok if the service drains before; else the caller
// calls done when the attempt has ended.
func (a *attempt) alone() (done func(), ok bool) {
	if a.held == nil || len(a.killed()) < begun.Most-1 {
		return func() {}, true
	}
	return a.run.suspects.release, a.run.suspects.acquire(a.run.ctx.Done())
}

// fatal returns the failure of an attempt that is not begun any more, since one replica after the
// other was killed during it; nil: it may begin. Rules that do not know the reason take it for
// a program that failed, of which they make as many attempts as of any.
func (a *attempt) fatal(h Handler) *forge.Failure {
	if a.held == nil || h.Regardless {
		return nil
	}
	names := a.killed()
	if len(names) < begun.Most {
		return nil
	}
	f := &forge.Failure{Reason: forge.FailKilledReplica}
	for i, name := range names {
		names[i], _, _ = strings.Cut(name, " ") // the replica, without its life
	}
	f.Message = fmt.Sprintf("killed while they worked on it, without having been asked to stop: %s", strings.Join(names, ", "))
	if a.cmd.Patience == 0 {
		f.Reason = forge.FailCrashed
	}
	return f
}

// noteKilled tells other replicas, and the next delivery of the commands, during which attempts a
// former process of this replica was killed. What cannot be told at once, because another replica
// is at it or the bus does not answer, is told later, until ctx ends.
func (r *workerRun) noteKilled(ctx context.Context, wait *sync.WaitGroup) {
	r.untold = r.Outbox.running().Left()
	for _, left := range slices.Clone(r.untold) {
		if r.noteOne(ctx, &left) {
			continue
		}
		wait.Go(func() {
			tick := time.NewTicker(r.recheck())
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return // the next start goes on
				case <-tick.C:
				}
				if r.noteOne(ctx, &left) {
					return
				}
			}
		})
	}
}

// noteOne tells of one attempt, unless nobody waits for it any more. It returns
// false if that has to be done again.
func (r *workerRun) noteOne(ctx context.Context, left *begun.Attempt) bool {
	log := r.attempt(forge.Command{To: left.To, Attempt: left.Attempt}).log
	wanted, err := r.Bus.Journal.Wanted(ctx, left.To, left.Attempt)
	if err == nil && wanted {
		log.WarnContext(ctx, "a former process of this replica was killed during an attempt", "killed", left.Killed)
		err = r.Bus.Leases.NoteKilled(ctx, left.To, left.Attempt, r.holder, left.Killed...)
	}
	if err != nil {
		log.DebugContext(ctx, "it is not yet told that a former process was killed during an attempt", "error", err)
		return false
	}
	left.Forget()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.untold = slices.DeleteFunc(r.untold, func(u begun.Attempt) bool { return u.To == left.To && u.Attempt == left.Attempt })
	return true
}
