package local

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// answerTime bounds how long a session waits for a runner that is just starting.
const answerTime = 5 * time.Second

// OpenServing is Open for who asks as other systems do: by requests that a runner answers. It returns
// when one does, or after five seconds.
func OpenServing(ctx context.Context, repo *Repository, log *slog.Logger) (*Session, error) {
	s, err := openDeciding(ctx, repo, runner.Config{Serve: true}, log)
	if err != nil {
		return nil, err
	}
	s.awaitAnswers(ctx)
	return s, nil
}

// awaitAnswers waits until a runner answers. One that does not is told by whatever is asked next.
func (s *Session) awaitAnswers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		_, err := s.Bus.Submissions.List(ctx, s.Repo.Project, string(access.Gateway), requests.ListRequest{Limit: 1})
		if !errors.Is(err, requests.ErrRunnerDown) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollStore):
		}
	}
}

// Running reports whether a run goes on in another process in this repository.
func Running(ctx context.Context, repo *Repository) bool {
	e, err := natsd.Find(ctx, repo.Root, storeDir)
	return err == nil && e.Purpose == purposeRun
}
