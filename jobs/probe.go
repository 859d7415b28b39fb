package jobs

import (
	"context"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/retry"
	"github.com/pfl-forge/pfl-forge/service"
)

const (
	// beginPatience is how long an attempt waits for the origin before it says that
	// it does not answer. It is also what paces a replica that alone cannot reach
	// it, while others can: what it took comes back to it at most that often.
	beginPatience = 2 * time.Second
	// oneLook bounds one look at the origin: a server that is silent is away as well.
	oneLook = 10 * time.Second
	// longestLook bounds the pause between two looks: all goes on that long
	// after the origin's return, at most.
	longestLook = time.Second
	// refusedLook bounds that pause where the origin answers, and refuses our
	// credentials or whatever is pushed: servers lock accounts that are refused
	// too often, and hooks cost them something.
	refusedLook = 20 * time.Second
	// onePush bounds a look at whether the origin takes work, whose hooks may take their time.
	onePush = 2 * time.Minute
	// maxRefusals is how often in a row a replica may be refused by an origin
	// that others say is open, before it is this replica's credentials that are
	// at fault, and refusalPause the least time between two that count.
	maxRefusals  = 5
	refusalPause = 3 * time.Second
)

// Probe waits until a project's origin answers and takes work, as long as the command
// says, and reports whether it does. One in vain takes all of that time, whatever the
// reason: the project issues the next at once, so nothing else would pace them.
func (s *Set) Probe(ctx context.Context, cmd forge.Command, _ service.Progress) forge.Result {
	p := s.projects[cmd.To.Project]
	if p == nil { // such as one that was taken out of the settings while its origin is away
		waited, cancel := context.WithTimeout(ctx, cmd.Probe().Patience)
		defer cancel()
		<-waited.Done()
		return forge.Result{Output: Failure(notServed(cmd.To.Project))}
	}
	patience := cmd.Probe().Patience
	away := retry.Pace{First: 250 * time.Millisecond, Most: longestLook}
	refusing := retry.Pace{First: time.Second, Most: refusedLook}
	began := time.Now()
	err := s.look(ctx, p)
	for git.Unserved(err) && time.Since(began) < patience {
		pace := &away
		if !git.Unreachable(err) {
			pace = &refusing
		}
		if pace.Sleep(ctx) != nil {
			break
		}
		err = s.look(ctx, p)
	}
	if err != nil {
		return forge.Result{Output: Failure(err)}
	}
	p.origin.Reached()
	return forge.Result{Output: &forge.Probed{}}
}

// look looks once whether a project's origin answers and takes work.
func (s *Set) look(ctx context.Context, p *project) error {
	opening, cancel := context.WithTimeout(ctx, oneLook)
	r, err := s.ready(opening, p)
	cancel()
	if err != nil {
		return err
	}
	ctx, cancel = context.WithTimeout(ctx, onePush)
	defer cancel()
	return r.Store.TakesWork(ctx)
}

// refusals counts how often in a row commands of a project found that the origin refuses
// our credentials. It is not called while the project knows that: then nothing is begun.
type refusals struct {
	mu    sync.Mutex
	count int
	last  time.Time
}

// observe takes how a command ended, and reports whether it is this replica
// alone whose credentials are refused: the project was open each time.
func (r *refusals) observe(err error) (alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if git.CauseOf(err) != git.CauseAuth {
		r.count = 0
		return false
	}
	if now := time.Now(); now.Sub(r.last) >= refusalPause {
		r.count, r.last = r.count+1, now
	}
	return r.count > maxRefusals
}

// patiently calls do again while the origin does not answer, for as long as patience says.
func patiently(ctx context.Context, patience time.Duration, do func() error) error {
	pace := retry.Pace{First: 250 * time.Millisecond, Most: longestLook}
	for began := time.Now(); ; {
		err := do()
		if !git.Unreachable(err) || time.Since(began) >= patience || pace.Sleep(ctx) != nil {
			return err
		}
	}
}
