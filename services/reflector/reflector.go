// Package reflector is the reflector service: it looks back at runs that ended and at
// what was noticed, proposes intents, makes skills of what comes back, and sums up the
// iterations of goals.
//
// [Reflector] has a handler for each of three steps: reflect (reflect.go;
// reflectiondata.go selects what the agent is told of the runs), abstract (abstract.go;
// skills.go lists the skills that the repository has), and summarize (summarize.go).
package reflector

import (
	"cmp"
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

// Reflector carries out the steps reflect, abstract and summarize. It is safe for
// concurrent use.
type Reflector struct {
	repos *jobs.Set
}

// New returns a reflector on these repositories.
func New(repos *jobs.Set) *Reflector { return &Reflector{repos: repos} }

// Handlers returns the handlers for the worker that is passed to Run.
func (r *Reflector) Handlers() []service.Handler {
	do := func(step forge.Step, work func(context.Context, *jobs.Job) error) service.Handler {
		return service.Handler{Step: step, Agent: true, Do: func(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
			return r.repos.Do(ctx, &cmd, progress, work)
		}}
	}
	return []service.Handler{do(forge.StepReflect, reflect), do(forge.StepAbstract, abstract), do(forge.StepSummarize, summarize)}
}

// Run has the worker, which was made with Handlers, work until ctx ends.
func (r *Reflector) Run(ctx context.Context, w *service.Worker) error { return w.Run(ctx) }

// ask has the command's agent answer in a checkout of the tip of the base branch;
// prompts gets its directory. An attempt that is repeated begins a new session: none
// is kept.
func ask(ctx context.Context, j *jobs.Job, call agent.Call, prompts func(dir string) (system, text string, err error)) (agent.Outcome, error) {
	view, done, err := j.View(ctx, string(j.Command.Attempt.Step), j.Tip)
	if err != nil {
		return agent.Outcome{}, err
	}
	defer done()
	call.Dir, call.Env = view.Dir(), view.Env()
	call.Schema, call.Session = agent.Spec(call.Role).Schema, agent.Session{ID: cmp.Or(j.Command.Session, agent.NewSessionID())}
	if call.System, call.Prompt, err = prompts(call.Dir); err != nil {
		return agent.Outcome{}, err
	}
	return j.Run(ctx, call)
}
