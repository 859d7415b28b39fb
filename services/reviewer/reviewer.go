// Package reviewer is the reviewer service: it judges one exact commit of a task, or of a
// goal.
//
// [Reviewer] has a handler for each of two steps: review (review.go) for a task, judge
// (judge.go, goal.go) for a goal. Both show the agent the change (change.go, patch.go; one
// that is too large as files: files.go, parts.go, fit.go) without what its author said of
// it, and without the files that would instruct the agent (withhold.go). claims.go looks up
// the evidence of the answer, inquiry.go has a reviewer ask for checks before it answers,
// and proof.go signs the verdict.
package reviewer

import (
	"context"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service"
)

// Reviewer carries out the steps review and judge. It is safe for concurrent use.
type Reviewer struct {
	repos *jobs.Set
	id    forge.ReplicaID
	// key signs verdicts.
	key proof.Source
	// systems are system prompts that take the place of the reviewer's own, by step.
	systems map[forge.Step]string
}

// New returns a reviewer on these repositories, as one replica. key signs its
// verdicts; nil: nothing is signed.
func New(repos *jobs.Set, id forge.ReplicaID, key proof.Source) *Reviewer {
	return &Reviewer{repos: repos, id: id, key: key}
}

// Instruct has a step's calls get another system prompt than the reviewer's
// own. It is called before the first command.
func (r *Reviewer) Instruct(step forge.Step, system string) {
	if r.systems == nil {
		r.systems = map[forge.Step]string{}
	}
	r.systems[step] = system
}

// Handlers returns the handlers for the worker that is passed to Run.
func (r *Reviewer) Handlers() []service.Handler {
	return []service.Handler{{Step: forge.StepReview, Agent: true, Do: r.review}, {Step: forge.StepJudge, Agent: true, Do: r.judge}}
}

// Run has the worker, which was made with Handlers, work until ctx ends. It removes the
// sessions of reviews that do not go on: at the start, and when tasks end.
func (r *Reviewer) Run(ctx context.Context, w *service.Worker) error {
	if err := r.repos.Prepare(ctx, sweep); err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	w.OnControl = func(c live.Control) {
		if len(c.Released) > 0 {
			background.Go(func() { r.forget(ctx, c) })
		}
	}
	return w.Run(ctx)
}

// forget removes the sessions of reviews of tasks that ended. What cannot be
// removed, the next start removes.
func (r *Reviewer) forget(ctx context.Context, c live.Control) {
	repo, err := r.repos.Get(c.To.Project)
	if err != nil {
		return // another process serves it
	}
	var names []string
	for _, id := range c.Released {
		names = append(names, stateOf(id))
	}
	_ = repo.Retire(ctx, names...)
}
