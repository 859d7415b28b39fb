package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Failure returns the failure that an attempt reports for an error: the agent's own if it is one,
// forge.FailUnsafe for work that git refuses, forge.FailOrigin where the origin does not answer
// or keeps nothing at all, forge.FailPush where it refuses this work alone, forge.FailKilled if
// the context ended, and forge.FailRepository for everything else that git or the disk said.
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
	if git.Unserved(err) {
		return &forge.Failure{Reason: forge.FailOrigin, Message: away(err)}
	}
	if _, alone := errors.AsType[*git.RefusedError](err); alone {
		words, hook := git.Refusal(err)
		if !hook {
			words = oneLine(err)
		}
		return &forge.Failure{Reason: forge.FailPush, Message: said(words)}
	}
	return &forge.Failure{Reason: reason, Message: term.Sanitize(userInfo.ReplaceAllString(err.Error(), "://"))}
}

// away says in a line which origin does not answer, and why, without a password
// that is in its address.
func away(err error) string {
	text := fmt.Sprintf("%s: %s", git.CauseOf(err), oneLine(err))
	if words, refused := git.Refusal(err); refused {
		text = "keeps nothing below refs/forge: " + said(words)
	}
	if e, ok := errors.AsType[*git.Error](err); ok {
		if i := slices.IndexFunc(e.Args, func(a string) bool { return store.CheckAddress(a) == nil }); i >= 0 {
			text = userInfo.ReplaceAllString(e.Args[i], "://") + ": " + text
		}
	}
	return term.Sanitize(text)
}
