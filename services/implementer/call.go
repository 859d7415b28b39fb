package implementer

import (
	"context"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// changed reports whether the checkout may have a change. It returns true if
// that cannot be found out: collecting the change then returns the error.
func (w *work) changed(ctx context.Context) bool {
	changed, err := w.checkout.Changed(ctx)
	return changed || err != nil
}

// call has the agent work in the checkout, in the command's session: resumed from
// where the attempt before was, or the delivery that was cut off, or new.
func (w *work) call(ctx context.Context) (agent.Outcome, error) {
	call := agent.Call{
		Role: agent.RoleImplement, Dir: w.checkout.Dir(), Env: w.checkout.Env(), StateDir: w.StateDir(string(w.Task())),
	}
	if isExecute(w.Command) {
		call.Role = agent.RoleExecute
	}
	recipe, err := w.IsRecipe()
	if err != nil {
		return agent.Outcome{}, err
	}
	if recipe {
		call.Changed = w.changed
		return w.Run(ctx, call)
	}
	return w.CallInSession(ctx, call, sessions.Call{
		Begun: w.state.Called && w.touched,
		Save:  w.saveCheckpoint,
		Prompts: func(o sessions.Start) (system, text string, err error) {
			if system, text, err = w.prompts(ctx, o); err != nil {
				return "", "", err
			}
			w.state.Called = true
			return system, text, w.state.write()
		},
	})
}
