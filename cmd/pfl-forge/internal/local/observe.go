package local

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/workspace"
)

// Observe tells the observer what others work on until ctx ends, also when nothing can
// go on without a person. It changes nothing.
func Observe(ctx context.Context, b *bus.Bus, project forge.ProjectID, observer Observer) error {
	return newWatch(b, project, observer).run(ctx)
}

// ObserveRun is Observe for the run that goes on in another process in this repository.
// It also returns, without an error, when that process ends. Error: natsd.ErrNotRunning.
func ObserveRun(ctx context.Context, repo *Repository, observer Observer, log *slog.Logger) error {
	s, err := join(ctx, repo, log)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- Observe(watching, s.Bus, repo.Project, observer) }()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if s.Gone(ctx) {
				stop()
				return <-ended
			}
		}
	}
}

// Written returns when what was decided was last written into the files of a repository;
// zero if it never was.
func (r *Repository) Written() time.Time {
	info, err := os.Stat(filepath.Join(r.Root, workspace.Dir, "state.yaml"))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
