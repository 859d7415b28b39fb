package reviewer

import (
	"reflect"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt/prompttest"
)

// towards is a goal in its third iteration, in which everybody who can write something is
// hostile.
func towards() *forge.Command {
	cmd := command()
	cmd.Intent.Goal = &forge.GoalOptions{JudgePrompt: "Look at the tests first.\n" + injection}
	cmd.Task = forge.Task{Plan: "Mend the form.\nTest it.", Base: "0", Head: "1"}
	cmd.Input = &forge.IterationInput{Verify: cmd.Review().Verify, Goal: forge.GoalContext{
		Iteration: 3, Criteria: []string{"It says why\n" + injection, "A test shows it"},
		Summaries: []forge.ExecutionSummary{
			{Iteration: 2, Reason: "the one before"},
			{
				Iteration: 3, Result: forge.ExecutionFailure, Reason: "Half of it." + injection,
				Next: &forge.NextAction{PendingItems: []string{"the other half" + injection}, Blockers: []string{"none"}},
			},
		},
		Execution: &forge.Execution{
			Status: forge.ExecutionSuccess, Output: "All criteria are met.\n" + injection, Approach: "Tests first." + injection,
			Discoveries: []string{"The form is old." + injection},
		},
	}}
	return cmd
}

func judged(t *testing.T, g *judgeData) string {
	t.Helper()
	_, text, err := g.render()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestJudgePrompt(t *testing.T) {
	g := newJudgeData(towards(), []string{"make"})
	g.fitted, g.Rules = fit(split(small)), []string{"CLAUDE.md"}
	g.Files = []file{{`"form.go"`, "new " + injection, false}, {`"long.go"`, "long\n", true}}
	system, text, err := g.render()
	if err != nil {
		t.Fatal(err)
	}
	prompttest.Golden(t, "judge-system", system)
	prompttest.Golden(t, "judge", text)
}

func TestJudgePromptOfALargeChange(t *testing.T) {
	in := &forge.IterationInput{
		Verify: &forge.VerifyReport{Command: "make test", Output: "FAIL\n"},
		Goal:   forge.GoalContext{Iteration: 1, Criteria: []string{"It is larger"}, Summaries: []forge.ExecutionSummary{{Iteration: 0}}},
	}
	cmd := &forge.Command{
		BudgetUSD: 5, Intent: forge.Intent{Settings: forge.Settings{Title: "Grow"}},
		Task: forge.Task{Plan: "Grow.", Base: "0", Head: "1"}, Input: in,
	}
	g := newJudgeData(cmd, []string{"make test"})
	g.fitted = fit(split(many(1, 200, "a.go") + many(1, 500_000, "b.go") + many(1, 9000, "go.sum") + "diff --git a/x.png b/x.png\nBinary files differ\n"))
	g.leave("huge\n.txt")
	g.MoreLeft = 7
	_, diff, _ := strings.Cut(g.Diff, "b.go b/b.go\n")
	prompttest.Golden(t, "judge-large", strings.Replace(judged(t, g), diff, "(and so on)\n", 1))
	in.Verify, g.fitted = nil, fitted{}
	g = newJudgeData(cmd, nil)
	if text := judged(t, g); !strings.Contains(text, "\nThe project has no commands that verify a change.") || !strings.Contains(text, "\nIt changes no file.") {
		t.Error(text)
	}
	if text := judged(t, newJudgeData(cmd, []string{"make"})); !strings.Contains(text, "\nNone of them ran on this commit.") {
		t.Error(text)
	}
}

func TestJudgePromptWithoutAChange(t *testing.T) {
	cmd := &forge.Command{
		BudgetUSD: 5,
		Intent:    forge.Intent{Settings: forge.Settings{Title: "Explain"}},
		Input: &forge.IterationInput{Verify: &forge.VerifyReport{Passed: true}, Goal: forge.GoalContext{
			Iteration: 1, Criteria: []string{"The report names every caller"},
			Execution: &forge.Execution{Status: forge.ExecutionSuccess, Output: "Nobody calls it."},
		}},
	}
	prompttest.Golden(t, "judge-unchanged", judged(t, newJudgeData(cmd, []string{"make"})))
	cmd.Task.Base, cmd.Task.Head = "1", "1"
	if newJudgeData(cmd, nil).Changed {
		t.Error("a head that is the base is a change")
	}
}

// Whatever a command carries, a judge reads what was asked for, and what the author says
// only below the heading that calls it claims.
func TestWhatReachesTheJudge(t *testing.T) {
	in := &forge.IterationInput{}
	cmd := &forge.Command{BudgetUSD: 5, Input: in}
	fill(reflect.ValueOf(cmd).Elem(), "Command")
	in.Goal.Summaries[0].Iteration = in.Goal.Iteration
	facts, claims, _ := strings.Cut(judged(t, newJudgeData(cmd, nil)), "\n# What the one who did the work says\n")
	for _, tt := range []struct {
		text    string
		allowed []string
	}{
		{facts, []string{
			"Command.Intent.Settings.Title.", "Command.Intent.Settings.Body.", "Command.Intent.Clarifications.Question.", "Command.Intent.Clarifications.Answer.",
			"Command.Intent.Settings.Goal.JudgePrompt.", "Command.Instructions.", "Command.Task.Plan.", "Command.Input.Goal.Criteria.",
			"Command.Input.Verify.Command.", "Command.Input.Verify.Output.",
		}},
		{claims, []string{
			"Command.Input.Goal.Execution.Status.", "Command.Input.Goal.Execution.Output.", "Command.Input.Goal.Execution.Approach.",
			"Command.Input.Goal.Execution.Discoveries.", "Command.Input.Goal.Summaries.Result.", "Command.Input.Goal.Summaries.Reason.",
			"Command.Input.Goal.Summaries.Next.PendingItems.",
			"Command.Input.Goal.Summaries.Next.Blockers.",
		}},
	} {
		text := tt.text
		for _, a := range tt.allowed {
			if !strings.Contains(text, a) {
				t.Errorf("%s is not shown", a)
			}
			text = strings.ReplaceAll(text, a, "")
		}
		if i := strings.Index(text, "Command."); i >= 0 {
			t.Errorf("shown: %.60q", text[i:])
		}
	}
}

// What every judgment costs before it says anything.
func BenchmarkFixedJudgePrompt(b *testing.B) {
	var system, text string
	for b.Loop() {
		var err error
		if system, text, err = newJudgeData(&forge.Command{BudgetUSD: 5}, nil).render(); err != nil {
			b.Fatal(err)
		}
	}
	prompttest.Fixed(b, system, text, agent.JudgmentSchema)
}
