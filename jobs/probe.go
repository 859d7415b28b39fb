package jobs

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/retry"
	"github.com/pfl-forge/pfl-forge/service"
)

const (
	// beginPatience is how long an attempt waits for the origin before it says that it does not answer. It is also what paces a
	// replica that alone cannot reach it, while others can: what it took comes back to it at most that often.
	beginPatience = 2 * time.Second
	// oneLook bounds one look at the origin: a server that is silent is away as well.
	oneLook = 10 * time.Second
	// longestLook bounds the pause between two looks: all goes on that long after the origin's return, at most.
	longestLook = time.Second
)

// Probe waits until a project's origin answers and takes work, as long as the command says, and reports whether it does. One in vain takes all of
// that time, whatever the reason: the project issues the next at once, so nothing else would pace them.
func (s *Set) Probe(ctx context.Context, cmd forge.Command, _ service.Progress) forge.Result {
	p := s.projects[cmd.To.Project]
	if p == nil { // such as one that was taken out of the settings while its origin is away
		waited, cancel := context.WithTimeout(ctx, cmd.Probe().Patience)
		defer cancel()
		<-waited.Done()
		return forge.Result{Output: Failure(notServed(cmd.To.Project))}
	}
	err := patiently(ctx, cmd.Probe().Patience, func() error {
		ctx, cancel := context.WithTimeout(ctx, oneLook)
		defer cancel()
		r, err := s.ready(ctx, p)
		if err == nil {
			err = r.Store.TakesWork(ctx)
		}
		return err
	})
	if err != nil {
		return forge.Result{Output: Failure(err)}
	}
	return forge.Result{Output: &forge.Probed{}}
}

// patiently calls do again while the origin does not answer, for as long as patience says.
func patiently(ctx context.Context, patience time.Duration, do func() error) error {
	pace := retry.Pace{First: 250 * time.Millisecond, Most: longestLook}
	for began := time.Now(); ; {
		err := do()
		if !git.Unserved(err) || time.Since(began) >= patience || pace.Sleep(ctx) != nil {
			return err
		}
	}
}
