package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/connect"
)

// knownWait bounds the wait for a runner whose answer is only shown: the project is
// known already, so the command continues without it.
const knownWait = 2 * time.Second

// StartRunner says what to do where no runner is up.
const StartRunner = "start forge-runner with this server"

// CheckProject refuses an organisation's project that has no intents and that no service has
// among its projects now. With known the project has intents, and is never refused: what is
// asked of it is stored, whoever runs. It notes in NoRunner that no runner is up, and in
// Doubt why it could not find out who serves the project. It does nothing in a repository.
func (t *Target) CheckProject(ctx context.Context, known bool) error {
	if !t.Remote || t.web != nil { // a gateway has answered by a runner
		return nil
	}
	t.looked = true
	answer, err := t.brief(ctx, known)
	t.Turns = answer.Turns
	t.NoRunner = errors.Is(err, requests.ErrRunnerDown)
	switch {
	case known:
	case t.NoRunner:
		return t.unknownWithoutRunner(ctx)
	case err != nil:
		t.Doubt = err
	case !answer.Known:
		return t.Unserved(ctx)
	}
	return nil
}

// brief asks a runner whether the project is known to it.
func (t *Target) brief(ctx context.Context, known bool) (requests.Services, error) {
	if known {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, knownWait)
		defer cancel()
	}
	return t.Bus.Submissions.Services(ctx, t.Project, t.Actor, true)
}

// Unserved returns the error for a project that is not known, with those that have intents, if
// this account may know of them.
func (t *Target) Unserved(ctx context.Context) error {
	serve := fmt.Sprintf("start the services with --project %s=URL", t.Project)
	others, err := t.others(ctx)
	if err != nil || len(others) == 0 {
		return fmt.Errorf("project %q is not served here: %s", t.Project, serve)
	}
	return fmt.Errorf("project %q is not served here%s; known are %s: give --project one of these, or %s",
		t.Project, connect.Meant(t.Project, others), connect.Listed(others), serve)
}

// unknownWithoutRunner returns the error for a project without a journal while no runner can
// say who serves it.
func (t *Target) unknownWithoutRunner(ctx context.Context) error {
	err := fmt.Errorf("no runner is up to say whether project %q, which has no intents yet, is served", t.Project)
	others, readErr := t.others(ctx)
	switch {
	case slices.Contains(others, t.Project):
		return nil
	case readErr == nil && len(others) > 0:
		err = fmt.Errorf("%w%s; known are %s", err, connect.Meant(t.Project, others), connect.Listed(others))
	}
	return fmt.Errorf("%w: %s, and try again", err, StartRunner)
}

// others returns the projects that have intents. A person's account may not know of them.
func (t *Target) others(ctx context.Context) ([]forge.ProjectID, error) {
	ctx, cancel := context.WithTimeout(ctx, knownWait)
	defer cancel()
	return t.Bus.Journal.Projects(ctx)
}
