package jobs

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Failure returns the failure that an attempt reports for an error: the agent's own
// if it is one, forge.FailUnsafe for work that git refuses, forge.FailKilled if the
// context ended, and forge.FailRepository for everything else that git or the disk
// said.
func Failure(err error) *forge.Failure {
	if f, ok := errors.AsType[*agent.Failure](err); ok {
		return &f.Failure
	}
	reason := forge.FailRepository
	if w, ok := errors.AsType[*git.WorkError](err); ok {
		err, reason = w, forge.FailUnsafe
	} else if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		reason = forge.FailKilled
	}
	return &forge.Failure{Reason: reason, Message: term.Sanitize(err.Error())}
}
