package implementer

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/claude"
)

// call has the agent work in the checkout: in the session of the attempt before, or
// of the delivery that was cut off, or in a new one.
func (w *work) call(ctx context.Context) (agent.Outcome, error) {
	call := agent.Call{
		Role: agent.RoleImplement, Dir: w.checkout.Dir(), Env: w.checkout.Env(), StateDir: w.StateDir(string(w.Task())),
		Schema: agent.ImplementationSchema, Session: agent.Session{ID: w.note.Session, Resume: w.note.Resume},
	}
	recipe, err := w.IsRecipe()
	if err != nil {
		return agent.Outcome{}, err
	}
	if recipe {
		call.Session = agent.Session{}
		return w.Run(ctx, call)
	}
	if !call.Session.Resume && claude.SessionFile(call.StateDir, call.Session.ID) != "" {
		call.Session.Resume = true // a delivery that was cut off began it
	}
	if call.System, call.Prompt, err = prompts(w.Command, call.Session.Resume, w.note.Interrupted); err != nil {
		return agent.Outcome{}, err
	}
	out, err := w.Run(ctx, call)
	if f, ok := errors.AsType[*agent.Failure](err); !ok || f.Reason != forge.FailLostSession || w.note.Resume {
		return out, err
	}
	call.Session = agent.Session{ID: claude.NewSessionID()}
	w.note.Session = call.Session.ID
	if err := w.note.write(); err != nil {
		return agent.Outcome{}, err
	}
	if call.System, call.Prompt, err = prompts(w.Command, false, w.note.Interrupted); err != nil {
		return agent.Outcome{}, err
	}
	return w.Run(ctx, call)
}
