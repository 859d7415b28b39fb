package implementer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt/prompttest"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// iterate is an iteration of a goal.
func iterate(n int) *forge.Command {
	c := task(n)
	c.Attempt.Step = forge.StepExecute
	c.Task.Steps, c.Task.RelevantFiles = nil, []string{"form.go"}
	c.Task.Criteria = []string{"The form\nworks.", "A test shows it." + injection}
	input(c).Goal = &forge.GoalContext{Iteration: n, Left: 10 - n, Criteria: c.Task.Criteria}
	return c
}

// later is an iteration that knows of others, and of everything there is.
func later() *forge.Command {
	c := iterate(3)
	c.Task.Base, c.Task.Head = "b1", "h2"
	input(c).Feedback = "\"make test\" failed after the change was put on the present base branch:\n--- FAIL: TestForm\n" + injection
	c.Goal().Summaries = []forge.ExecutionSummary{
		{
			Iteration: 1, Approach: "Write it anew." + injection, Result: forge.ExecutionFailure, Reason: "It took too long.",
			Metadata: forge.SummaryMetadata{ErrorType: "timeout"},
			Next: &forge.NextAction{
				SuggestedAction: "Mend what is there.", Blockers: []string{"the old form", "its\ntest"},
				PartialProgress: "It compiles.", PendingItems: []string{"the test"},
			},
		},
		{Iteration: 2, Approach: "Mend it.", Result: forge.ExecutionSuccess, Reason: "It works.", Artifacts: strings.Fields(strings.Repeat("form.go ", 17))},
	}
	c.Goal().Judgment = &forge.Judgment{
		Head: "h2", Reason: "It is not tested.", NextAction: "Write the test." + injection,
		Claims: []forge.Claim{
			{Number: 1, Text: c.Task.Criteria[0], Met: true, Note: "form.go:4: it checks\nthe name." + injection, Confidence: 0.9},
			{Number: 2, Text: c.Task.Criteria[1], Note: "There is none.", Confidence: 1},
		},
	}
	c.Goal().Knowledge = []forge.Knowledge{
		{
			ID: "other/k1", Type: forge.KnowledgePattern, Category: "testing", Content: "Tests are\ntables." + injection,
			ExampleFile: "form_test.go:3", Confidence: forge.ConfidenceHigh,
		},
		{ID: "fix-login/k2", Type: forge.KnowledgeLesson, Content: "It is cached.", Confidence: forge.ConfidenceLow},
	}
	input(c).Overlaps = []forge.Overlap{{TaskID: "other-001", Files: []string{"form.go"}}}
	return c
}

// Each way in which an iteration can begin.
func TestGoalPrompts(t *testing.T) {
	t.Parallel()
	checks := []string{"make test"}
	with := func(c *forge.Command, change func(*forge.Command)) *forge.Command { change(c); return c }
	for name, p := range map[string]struct {
		cmd *forge.Command
		b   promptInput
	}{
		"first": {iterate(1), promptInput{opening: sessions.New, checks: checks}},
		"later": {later(), promptInput{opening: sessions.New, commits: commitsSoFar, checks: checks}},
		"last": {
			with(later(), func(c *forge.Command) {
				in := input(c)
				in.Goal.Left, c.Task.Head, in.Feedback, in.Overlaps, in.Goal.Knowledge = 0, "b1", "", nil, nil
				in.Goal.Judgment.NextAction = ""
			}),
			promptInput{opening: sessions.New},
		},
		"conflict": {
			with(later(), func(c *forge.Command) {
				in := input(c)
				in.Fresh, in.Feedback, in.Overlaps = true, "The change conflicted with what was merged meanwhile in: form.go.", nil
			}),
			promptInput{opening: sessions.New, checks: checks},
		},
		"lost": {later(), promptInput{opening: sessions.Lost, commits: commitsSoFar, checks: checks}},
		"resumed": {
			with(later(), func(c *forge.Command) { input(c).Continue = true }),
			promptInput{opening: sessions.Resumed, commits: commitsSoFar, checks: checks},
		},
		"moved": {iterate(1), promptInput{opening: sessions.Resumed, cutOff: true, moved: true}},
	} {
		system, text, err := render(p.cmd, p.b)
		if err != nil {
			t.Fatal(err)
		}
		prompttest.Golden(t, "goal-system", system)
		prompttest.Golden(t, "goal-"+name, text)
	}
}

// Long histories are shown from their end, and what is left out is counted.
func TestOldSummariesAreLeftOut(t *testing.T) {
	t.Parallel()
	var list []forge.ExecutionSummary
	for n := range 40 {
		list = append(list, forge.ExecutionSummary{Iteration: n + 1, Approach: fmt.Sprint("approach ", n+1), Reason: strings.Repeat("because ", 500)})
	}
	shown, left := summaries(list)
	if left == 0 || left+len(shown) != 40 || shown[len(shown)-1].Number != 40 || shown[0].Number != left+1 {
		t.Errorf("%d are left out, %d to %d shown", left, shown[0].Number, shown[len(shown)-1].Number)
	}
	c := iterate(41)
	c.Goal().Summaries = list
	_, text, err := render(c, promptInput{opening: sessions.New})
	if err != nil || len(text) > maxSummaries+8<<10 || !strings.Contains(text, fmt.Sprintf("(%d more are left out.)", left)) {
		t.Errorf("%v: %d bytes", err, len(text))
	}
}

// What a person adds to the system prompt comes last in it.
func TestSystemPromptOfAGoal(t *testing.T) {
	t.Parallel()
	c := iterate(1)
	plain, _, err := render(c, promptInput{opening: sessions.New})
	if err != nil {
		t.Fatal(err)
	}
	c.Intent.Goal = &forge.GoalOptions{SystemPrompt: " Write British English.\x1b[2J\n"}
	system, _, err := render(c, promptInput{opening: sessions.New})
	if want := plain + "\nThe person who set this goal adds:\nWrite British English.\n"; err != nil || system != want {
		t.Errorf("%v: %q", err, strings.TrimPrefix(system, plain))
	}
	c.Attempt.Step = forge.StepImplement
	if system, _, _ = render(c, promptInput{opening: sessions.New}); strings.Contains(system, "British") {
		t.Error("it is of executions only")
	}
}

// What every execution costs before it says anything.
func BenchmarkFixedGoalPrompt(b *testing.B) {
	var system, text string
	for b.Loop() {
		var err error
		cmd := &forge.Command{BudgetUSD: 5, Attempt: forge.Attempt{Step: forge.StepExecute}}
		if system, text, err = render(cmd, promptInput{opening: sessions.New}); err != nil {
			b.Fatal(err)
		}
	}
	prompttest.Fixed(b, system, text, agent.ExecutionSchema)
}
