package repository

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Failure says why an attempt did not do its job: what an agent reports, what is
// wrong with its work, that somebody stopped it, or that git or the disk reported an error.
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
