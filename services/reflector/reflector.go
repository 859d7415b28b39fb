// Package reflector is the reflector service: it looks back at a run that ended.
//
// At present it reads what the agents observed, so that nothing is read twice, and
// proposes nothing.
package reflector

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service"
)

// Reflector does the step reflect. It needs no repository.
type Reflector struct{}

// New returns a reflector.
func New() *Reflector { return &Reflector{} }

// Handlers is what a worker has to do for it.
func (r *Reflector) Handlers() []service.Handler {
	return []service.Handler{{Step: forge.StepReflect, Do: reflect}}
}

// Run has the worker, which was made with Handlers, work until ctx ends.
func (r *Reflector) Run(ctx context.Context, w *service.Worker) error { return w.Run(ctx) }

func reflect(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
	var read []string
	for i := range cmd.Observations {
		read = append(read, cmd.Observations[i].ID)
	}
	return forge.Result{Reflection: &forge.Reflection{Read: read}}
}
