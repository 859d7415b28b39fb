package target

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nuid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// askTimeout bounds how long a person waits for a ruling.
const askTimeout = 10 * time.Second

// Ask sends an event of a person and returns the ruling on it. It gives the event its id
// and actor; To is up to the caller. A ruling with an empty Decision means that the event
// is stored, and that no runner has decided on it within askTimeout, or at once that none
// is up; its Reason says which.
func (t *Target) Ask(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	if t.web != nil {
		return t.askHTTP(ctx, ev)
	}
	ev.ID, ev.Actor = nuid.Next(), t.Actor
	if !t.looked {
		_ = t.CheckProject(ctx, true) // refuses nothing
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if t.NoRunner {
		return forge.Ruling{EventID: ev.ID, Reason: "no runner is up: " + StartRunner}, t.Bus.Submissions.Send(ctx, ev)
	}
	r, err := t.Bus.Submissions.Ask(ctx, ev)
	r.Reason = term.Line(r.Reason)
	switch {
	case errors.Is(err, requests.ErrNoRuling):
		return forge.Ruling{EventID: ev.ID, Reason: "waiting for a runner to decide"}, nil
	case err != nil && t.Session != nil && t.Session.Gone(context.WithoutCancel(ctx)):
		return r, errors.New("the active run has just ended; try again")
	}
	return r, err
}

// Next returns a line that says who goes on with what was decided, and how.
func (t *Target) Next() string {
	switch {
	case t.Remote:
		return "next: pfl-forge status"
	case t.Owner:
		return "next: pfl-forge run"
	}
	return "the active run picks it up"
}
