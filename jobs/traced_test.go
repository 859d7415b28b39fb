package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/export"
	"github.com/pfl-forge/pfl-forge/internal/telemetry/otlptest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// tracedProject has a command of each kind. They hold, print and are told what must not leave
// the machine.
const tracedProject = `
worktree_setup: ['echo hunter2 > x']
verify: ['true', 'echo "$TRACEPARENT hunter2"; exit 3', 'exit 4']
recipes:
  sort:
    run: echo "$NAME" > a.txt; git add -A
    check: test "$TRACEPARENT" && grep hunter2 a.txt
    params: [{name: NAME}]
`

// TestSpansOfGitAndCommands: below an attempt's span a collector finds a span for each command
// that the repository defines and for each costly thing that git does, and for nothing
// besides: not for git's small calls, and not for checkpoints, which come every few seconds. None
// of them holds what commands are or say.
func TestSpansOfGitAndCommands(t *testing.T) {
	received := otlptest.Start(t)
	e, err := export.Open(t.Context(), export.Config{Service: "implementer", Getenv: os.Getenv, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	origin := gittest.New(t, map[string]string{"pfl-forge.yaml": tracedProject, "a.txt": "a\n"}).Origin()
	set := repotest.Measured(t, jobs.Source{Project: repotest.Project, URL: origin}, e.Recorder)
	cmd := &forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"}, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1},
		Intent: forge.Intent{Settings: forge.Settings{Recipe: "sort", With: map[string]string{"NAME": "hunter2"}}},
	}
	run := telemetry.Run{Key: cmd.To, Number: 1}
	ctx, finish := e.Recorder.Attempt(t.Context(), run, cmd)
	var report *forge.VerifyReport
	res := set.Do(ctx, cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) (err error) {
		report, err = journey(ctx, j)
		return err
	})
	if res.Failure() != nil {
		t.Fatalf("%+v", res.Failure())
	}
	finish(&res)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	all := received.Spans()
	names, got := map[string]string{}, []string(nil)
	for _, s := range all {
		names[s.ID] = s.Name
		if text := fmt.Sprint(s); strings.Contains(text, "hunter2") || strings.Contains(text, origin) {
			t.Errorf("%s tells too much: %+v", s.Name, s)
		}
		if s.Trace != run.TraceID() {
			t.Errorf("%s is in another trace", s.Name)
		}
		if s.Name == "verify command" && s.Failed && !strings.Contains(report.Output, "00-"+s.Trace+"-"+s.ID+"-01") {
			t.Errorf("the command is told %q, and its span is %s", report.Output, s.ID)
		}
	}
	for _, s := range all {
		got = append(got, describeSpan(names[s.Parent], s))
	}
	slices.Sort(got)
	want := []string{
		" > implement",
		"agent recipe > recipe check 0: exit 0",
		"agent recipe > recipe run 0: exit 0",
		"git collect > git push",
		"git merge > git push",
		"implement > agent recipe",
		"implement > agent recipe",
		"implement > git checkout",
		"implement > git collect",
		"implement > git fetch", // the tip of the base branch
		"implement > git merge",
		"implement > git rebase",
		"implement > verify",
		"implement > worktree_setup command 0: exit 0",
		"verify > git checkout",
		"verify > verify command 0: exit 0",
		"verify > verify command 1: exit 3, failed ",
		"verify > worktree_setup command 0: exit 0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestWithoutTracesNothingIsObserved: where no traces are taken, git has nobody to tell.
func TestWithoutTracesNothingIsObserved(t *testing.T) {
	t.Parallel()
	got := do(t, repotest.Local(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Dir), func(ctx context.Context, _ *jobs.Job) error {
		if inner, _ := git.Begin(ctx, git.OpFetch); inner != ctx {
			t.Error("somebody is told")
		}
		return nil
	})
	if got.Failure() != nil {
		t.Errorf("%+v", got.Failure())
	}
}

// describeSpan returns a span and the name of the one above it, for comparison.
func describeSpan(parent string, s otlptest.Span) string {
	text := parent + " > " + s.Name
	if index, ok := s.Attributes["forge.command.index"]; ok {
		text += " " + index + ": exit " + s.Attributes["process.exit.code"]
		if s.Failed {
			text += ", failed " + s.Status
		}
	} else if s.Failed {
		text += ": failed " + s.Attributes["error.type"]
	}
	return text
}

// journey does once what attempts do with a repository.
func journey(ctx context.Context, j *jobs.Job) (*forge.VerifyReport, error) {
	c, err := j.Pool.Prepare(ctx, j.Task(), j.Tip)
	if err != nil {
		return nil, err
	}
	if err := j.SetUp(ctx, c, ""); err != nil {
		return nil, err
	}
	for _, role := range []agent.Role{agent.RoleImplement, agent.RoleReview} {
		if _, err := j.Run(ctx, agent.Call{Role: role, Dir: c.Dir()}); err != nil {
			return nil, err
		}
	}
	if _, err := c.Checkpoint(ctx, j.GitAttempt(), checkout.Checkpoint{}); err != nil {
		return nil, err
	}
	if _, err := c.CommitAll(ctx, "Sort", git.Identity{Name: "A", Email: "a@example.org"}); err != nil {
		return nil, err
	}
	got, err := c.Collect(ctx, j.GitAttempt())
	if err != nil {
		return nil, err
	}
	moved, err := j.Store.Rebase(ctx, j.Tip, got.Head, j.Tip)
	if err != nil {
		return nil, err
	}
	report, err := j.Verify(ctx, moved.Head)
	if err != nil {
		return nil, err
	}
	base, err := j.Base(ctx)
	if err != nil {
		return nil, err
	}
	_, err = j.Store.Merge(ctx, base, j.Tip, moved.Head)
	return report, err
}
