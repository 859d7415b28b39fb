package jobs

import (
	"context"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// configureGoal applies the goal's own model and tools to a call of its executing
// agent. The model is applied only to the back end that was chosen, because a
// fallback may not know it.
func (j *Job) configureGoal(call *agent.Call, chosen bool) (err error) {
	g := j.Command.Intent.Goal
	if g == nil {
		return nil
	}
	if g.Model != "" && chosen {
		call.Model = g.Model
	}
	if len(g.Tools) > 0 {
		call.Tools, err = goals.Tools(g.Tools, call.Tools)
	}
	return err
}

// VerifyGoal verifies a commit as Verify does, then runs the checks that decide criteria
// of its goal, all of them, each in a fresh checkout of its own: nothing that verify
// commands or other checks leave behind decides. Where verify commands fail, no check is
// run.
func VerifyGoal(ctx context.Context, j *Job, commit git.OID, checks []forge.Check) (*forge.VerifyReport, error) {
	list, err := goals.Commands(j.Config, j.Tip, checks)
	if err != nil {
		return nil, err
	}
	report, err := j.Verify(ctx, commit)
	if err != nil || len(list) == 0 || report != nil && !report.Passed {
		return report, err
	}
	if report == nil {
		report = &forge.VerifyReport{Passed: true}
	}
	tree, err := j.Store.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	report.Checks, err = runChecks(ctx, j, commit, tree, list)
	return report, err
}

// RunAsked runs checks of the project that a reviewer asked for on the head of a change,
// each in a fresh checkout as those of a goal. Exactly the commit that is reviewed is
// reported with them: nothing is rebased.
//
// The meaning of a name is that of the base branch. A name that it does not have is told in words:
// the reviewer asked, and gets an answer.
func RunAsked(ctx context.Context, j *Job, base, head git.OID, names []string) (*forge.Rebase, error) {
	tree, err := j.Store.Tree(ctx, head)
	if err != nil {
		return nil, err
	}
	report := &forge.VerifyReport{Passed: true}
	for _, name := range names {
		list, err := goals.Commands(j.Config, j.Tip, []forge.Check{{Name: name}})
		if err != nil {
			run := forge.CheckRun{ID: verdict.RunID(&forge.Check{Name: name}), Name: name, Tree: string(tree), ExitCode: -1}
			run.Output = "the project has no check of that name: " + strings.Join(j.Config.CheckNames(), ", ")
			report.Checks = append(report.Checks, run)
			continue
		}
		runs, err := runChecks(ctx, j, head, tree, list)
		if err != nil {
			return nil, err
		}
		report.Checks = append(report.Checks, runs...)
	}
	boundRuns(report.Checks)
	return &forge.Rebase{Base: string(base), Head: string(head), Tree: string(tree), Verify: report}, nil
}

// runChecks runs checks on a commit. All of them run, also after one that fails: whoever
// goes on is told everything at once.
func runChecks(ctx context.Context, j *Job, commit, tree git.OID, list []goals.Command) (runs []forge.CheckRun, err error) {
	for i := range list {
		traced, end := telemetry.Span(ctx, "check")
		run, err := check(traced, j, commit, &list[i], i)
		end(err)
		if err != nil {
			return nil, err
		}
		runs = append(runs, list[i].Named(run, string(tree)))
	}
	boundRuns(runs)
	return runs, nil
}

// check runs one check on a commit. One whose checkout cannot be set up does not pass.
func check(ctx context.Context, j *Job, commit git.OID, c *goals.Command, index int) (run forge.CheckRun, err error) {
	co, done, err := verifyView(ctx, j, commit)
	if err != nil {
		return run, err
	}
	defer done()
	layer, remove, err := j.host.scratch()
	if err != nil {
		return run, err
	}
	defer remove()
	if set, err := j.setUp(ctx, co, layer); err != nil || !set.Passed {
		return goals.NotSetUp(set), err
	}
	s, remove, err := shell(ctx, j, co, layer, j.Config.Policy.CommandNetwork)
	if err != nil {
		return run, err
	}
	defer remove()
	s.Command, s.For, s.Index, s.Limits = c.Line, telemetry.CommandCheck, index, agent.Limits{Wall: c.Timeout}
	run, whole, err := runOne(ctx, s)
	c.Decide(&run, whole)
	return run, err
}
