package task_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// TestScripts plays testdata/*.txt: what happens to one task in, its stage and the
// effects out. After a change, run with -rewrite and read the diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.play(t, d)
		})
	})
}

// script is one task, with a task that depends on it.
type script struct {
	set      task.Set
	goal     goal.State
	strategy task.Strategy
	intent   forge.Intent
	policy   forge.Policy
	attempt  int
}

func (s *script) begin(d *datadriven.TestData) {
	*s = script{strategy: task.Change{}, intent: forge.Intent{ID: "a", Settings: forge.Settings{Title: "title"}}, policy: forge.DefaultPolicy()}
	s.policy.ProtectedPaths = []string{"secret/"}
	first := &task.Task{Stage: task.Pending, Task: forge.Task{ID: "a-001", Status: forge.TaskPending}}
	s.set.Tasks = []*task.Task{first}
	if d.HasArg("goal") {
		s.intent.Goal = &forge.GoalOptions{MaxIterations: 2}
		s.goal.Begin(true)
		first.Criteria = []string{"one", "two"}
		s.strategy = goal.Strategy{State: &s.goal, Options: s.intent.Goal}
		return
	}
	s.set.Tasks = append(s.set.Tasks, &task.Task{Stage: task.Pending, Task: forge.Task{ID: "a-002", DependsOn: []forge.TaskID{"a-001"}}})
}

func (s *script) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "task" {
		s.begin(d)
	}
	one := s.set.Tasks[0]
	x := task.NewTurn(task.Turn{Now: time.Unix(0, 0).UTC(), Intent: &s.intent, Policy: &s.policy, Strategy: s.strategy, Tasks: &s.set})
	if err := s.happen(t, x, one, d); err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s", one.Stage, one.Status)
	if one.Failure != "" {
		fmt.Fprintf(&b, ": %s", one.Failure)
	}
	b.WriteByte('\n')
	for _, e := range x.Effects {
		b.WriteString(describe(e))
	}
	return b.String()
}

// happen has something happen to the task.
func (s *script) happen(t *testing.T, x *task.Turn, one *task.Task, d *datadriven.TestData) error {
	t.Helper()
	g, by := goal.Strategy{State: &s.goal, Options: s.intent.Goal}, task.Worker{Replica: "r1"}
	head := fmt.Sprintf("head-%d", s.attempt)
	switch d.Cmd {
	case "task":
	case "start":
		one.Start(x)
	case "implemented":
		s.attempt++
		im := &forge.Implementation{Base: "main", Head: head, Commits: 1, Unchanged: d.HasArg("unchanged"), Execution: &forge.Execution{}}
		if d.HasArg("nothing") {
			im.Commits, im.Head = 0, "main"
		}
		if s.intent.Goal != nil {
			g.Executed(x, one, im, by)
		} else {
			one.Implemented(x, im, by)
		}
	case "rebased":
		rb := &forge.Rebase{Base: "main", Head: head, PatchID: head, Files: []string{"main.go"}}
		rb.Verify = &forge.VerifyReport{Passed: !d.HasArg("broken"), Command: "make test"}
		if one.Head == one.Base {
			rb.Head, rb.PatchID, rb.Files = rb.Base, "", nil
		}
		if d.HasArg("conflict") {
			rb = &forge.Rebase{Conflicts: []string{"main.go"}}
		}
		if d.HasArg("secret") {
			rb.Files = []string{"secret/key"}
		}
		one.Rebased(x, rb)
	case "reviewed":
		rv := &forge.Review{TaskID: one.ID, Head: one.Head, Verdict: forge.VerdictApproved, Claims: claimtest.Met(one.Required())}
		if d.HasArg("rejected") {
			rv.Verdict, rv.Issues = forge.VerdictRejected, []string{"a test is missing"}
		}
		if d.HasArg("of-another-commit") {
			rv.Head = "other"
		}
		return one.Reviewed(x, rv, forge.Reviewer{})
	case "summarized":
		g.Summarized(x, one, &forge.Summarization{}, "")
	case "judged":
		j := &forge.Judgment{Head: goal.JudgedHead(one), Complete: true, Claims: claimtest.Met(one.Criteria)}
		if d.HasArg("not-met") {
			j.Claims[len(j.Claims)-1].Met = false
		}
		return g.Judged(x, one, j)
	case "merged":
		m := &forge.MergeResult{Outcome: forge.MergeDone, Commit: "commit", Parent: "tip", Files: []string{"main.go"}}
		if len(d.CmdArgs) > 0 {
			m.Outcome = forge.MergeOutcome(d.CmdArgs[0].Key)
			m.Verify, m.Candidate = &forge.VerifyReport{Command: "make test"}, one.Candidate
		}
		one.AnsweredMerge(x, m)
	case "merged-late":
		one.MergedLate(x, &forge.MergeResult{Outcome: forge.MergeDone, Commit: "commit"})
	case "locked":
		one.AnsweredLock(x, !d.HasArg("refused"))
	case "clear":
		one.Clear(x, &approval.Granted{})
	case "retry":
		one.FilesMoved(x)
	case "no-budget":
		one.NoBudget(x, forge.Step(d.CmdArgs[0].Key), "no budget is left")
	case "budget":
		one.BudgetRaised(x)
	case "cancel":
		one.Cancel(x, "")
	case "gave-up":
		one.GaveUp(x, forge.Step(d.CmdArgs[0].Key), "timeout")
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	return nil
}

func describe(e task.Effect) string {
	switch e := e.(type) {
	case task.Wait:
		return fmt.Sprintf("%s again at +%s", e.Step, e.At.Sub(time.Unix(0, 0).UTC()))
	case task.Adjust:
		return fmt.Sprintf("  rule %s %s: %s\n", e.Rule, e.Task, e.Detail)
	case task.Correct:
		return fmt.Sprintf("  the step came to %q\n", e.Outcome)
	case task.Issue:
		return fmt.Sprintf("  issue %s %q\n", e.Step, e.Replica)
	case task.AskLock:
		return fmt.Sprintf("  ask for the lock of %v\n", e.Files)
	case task.SendOverlap:
		return fmt.Sprintf("  tell %s of %v\n", e.To, e.Other)
	case task.Release:
		return fmt.Sprintf("  release %s\n", e.Task)
	case task.AskMerge:
		return "  ask to merge\n"
	case task.TakeBack:
		return "  take back\n"
	case task.Escalate:
		return "  escalate\n"
	case task.StopWork:
		return "  stop work\n"
	case task.FreeDependents:
		return "  free dependents\n"
	case task.Next:
		return "  next\n"
	}
	return fmt.Sprintf("  %T\n", e)
}
