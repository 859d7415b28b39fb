// Package analyzer is the analyzer service: it reads an intent and the repository, and
// answers with tasks, child intents or questions, with the criteria of a goal, with a
// report, or with patterns.
//
// [Analyzer] has a handler for each of five steps. analyze and architect (a deeper look,
// with a stronger model) are in analyze.go, audit and observe in look.go, intake (the
// criteria of a goal) in intake.go. prompt.go makes what the agent is told: history.go adds
// earlier runs, active.go the other intents under way. paths.go and places.go keep of
// an answer the files and the evidence that exist.
package analyzer

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

// Analyzer carries out the steps that read a repository before anything is changed:
// analyze, architect, audit, observe and intake.
type Analyzer struct {
	repos *jobs.Set
	log   *slog.Logger
	// others lists the intents of a project, as they are now; nil until Run.
	others func(context.Context, forge.ProjectID) ([]forge.Summary, error)
}

// New returns an analyzer on these repositories.
func New(repos *jobs.Set, log *slog.Logger) *Analyzer {
	return &Analyzer{repos: repos, log: log}
}

// Handlers returns the handlers for the worker that is passed to Run.
func (a *Analyzer) Handlers() []service.Handler {
	do := func(step forge.Step, work func(context.Context, *jobs.Job) error) service.Handler {
		return service.Handler{Step: step, Agent: true, Do: func(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
			return a.repos.Do(ctx, &cmd, progress, work)
		}}
	}
	return []service.Handler{
		do(forge.StepAnalyze, a.analyze), do(forge.StepArchitect, a.analyze), do(forge.StepAudit, audit), do(forge.StepObserve, patterns),
		do(forge.StepIntake, a.intake),
	}
}

// states returns the names of the state directories of an intent's steps.
func (a *Analyzer) states(intent forge.IntentID) []string {
	var names []string
	for _, h := range a.Handlers() {
		names = append(names, jobs.StateName(intent, h.Step))
	}
	return names
}

// Run removes the sessions of intents that ended before, and has the worker, which
// was made with Handlers, work until ctx ends.
func (a *Analyzer) Run(ctx context.Context, w *service.Worker) error {
	err := a.repos.Prepare(ctx, func(ctx context.Context, r *jobs.Repository) error { return a.sweep(ctx, w.Bus, r) })
	if err != nil {
		return err
	}
	a.others = w.Bus.Journal.Summaries
	var background sync.WaitGroup
	defer background.Wait()
	w.OnControl = func(c live.Control) {
		if c.Ended && !c.To.IsProject() {
			background.Go(func() { a.forget(ctx, c.To) })
		}
	}
	return w.Run(ctx)
}

// forget removes the sessions of an intent that ended.
func (a *Analyzer) forget(ctx context.Context, intent forge.Key) {
	r, err := a.repos.Get(intent.Project)
	if err != nil {
		return // another process serves it
	}
	err = errors.Join(r.Retire(ctx, a.states(intent.Intent)...), r.ForgetSessions(ctx, intent.Intent, ""))
	if err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "cannot remove old sessions; the next start does", "intent", intent.String(), "error", err)
	}
}

// sweep removes the sessions of intents that ended before this process listened.
func (a *Analyzer) sweep(ctx context.Context, b *bus.Bus, r *jobs.Repository) error {
	summaries, err := b.Journal.Summaries(ctx, r.Project)
	if err != nil {
		return err
	}
	var names []string
	ended := map[forge.IntentID]bool{}
	for i := range summaries {
		id := summaries[i].Key.Intent
		if ended[id] = summaries[i].Status.Ended(); ended[id] {
			names = append(names, a.states(id)...)
		}
	}
	keep := func(intent forge.IntentID, task forge.TaskID) bool { return task != "" || !ended[intent] }
	return errors.Join(r.Retire(ctx, names...), r.SweepSessions(ctx, keep))
}
