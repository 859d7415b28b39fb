// Package reviewer is the reviewer service: it judges one exact commit of a task, or of a
// goal.
package reviewer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/repository"
	"github.com/pfl-forge/pfl-forge/service"
)

// Reviewer does the steps review and judge.
type Reviewer struct {
	repos *repository.Set
}

// New returns a reviewer on these repositories.
func New(repos *repository.Set) *Reviewer { return &Reviewer{repos: repos} }

// Handlers is what a worker has to do for it.
func (r *Reviewer) Handlers() []service.Handler {
	return []service.Handler{{Step: forge.StepReview, Agent: true, Do: r.review}, {Step: forge.StepJudge, Agent: true, Do: r.judge}}
}

// Run has the worker, which was made with Handlers, work until ctx ends.
func (r *Reviewer) Run(ctx context.Context, w *service.Worker) error { return w.Run(ctx) }
