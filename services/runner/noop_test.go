package runner_test

import (
	"context"
	"log/slog"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

const project forge.ProjectID = "web"

// start runs a runner and workers that do nothing but succeed, until the test
// ends.
func start(t testing.TB, b *bus.Bus, parallel int) {
	t.Helper()
	startWith(t, b, parallel, succeed)
}

// startWith is start with workers that answer as they are told.
func startWith(t testing.TB, b *bus.Bus, parallel int, answer func(forge.Command) forge.Result) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: warnings(t), Ready: func() { close(ready) }, Rules: runner.RulesConfig{Alone: true}})
	})
	<-ready
	for _, step := range forge.Steps() {
		group.Go(func() error { return answerStep(ctx, b, step, parallel, answer) })
	}
}

// answerStep answers the commands of a step until ctx ends.
func answerStep(ctx context.Context, b *bus.Bus, step forge.Step, parallel int, answer func(forge.Command) forge.Result) error {
	return b.Commands.Consume(ctx, work.Config{Step: step, Replica: "noop", Parallel: parallel}, func(ctx context.Context, j *work.Job) error {
		return b.Results.Publish(ctx, answer(j.Command))
	})
}

// startWorkers runs workers alone until the test ends.
func startWorkers(t testing.TB, b *bus.Bus, answer func(forge.Command) forge.Result) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	for _, step := range forge.Steps() {
		group.Go(func() error { return answerStep(ctx, b, step, 4, answer) })
	}
}

// succeed is the result of a step that went well.
func succeed(c forge.Command) forge.Result {
	const commit = "0123456789012345678901234567890123456789"
	r := forge.Result{To: c.To, Attempt: c.Attempt, Replica: "noop"}
	switch c.Attempt.Step {
	case forge.StepAnalyze:
		r.Output = &forge.Analysis{Risk: forge.RiskLow, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	case forge.StepImplement:
		r.Output = &forge.Implementation{Base: commit, Head: commit, Commits: 1, Files: []string{string(c.Task.ID)}}
	case forge.StepRebase:
		r.Output = &forge.Rebase{Base: commit, Head: commit, Tree: commit, PatchID: commit, Files: []string{string(c.Task.ID)}}
	case forge.StepReview:
		r.Output = &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: claimtest.Met(c.Task.Required())}
	case forge.StepMerge:
		r.Output = &forge.MergeResult{Outcome: forge.MergeDone, Commit: commit, Parent: commit, Tree: commit}
	case forge.StepReflect:
		r.Output = &forge.Reflection{}
	default: // nobody asks for others here
	}
	return r
}

// submission is the event that asks for an intent.
func submission(id forge.IntentID) forge.Event {
	return forge.Event{
		ID: "submit/" + string(id), To: forge.Key{Project: project, Intent: id},
		Message: &forge.Submit{Intent: forge.Intent{
			ID: id, Project: project, Settings: forge.Settings{
				Title: string(id), Body: "do it",
			}, Source: forge.SourceHuman,
			Origin: forge.Origin{System: "test", EventID: string(id)},
		}},
	}
}

// warnings shows with the test's output what a runner warns of.
func warnings(t testing.TB) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}
