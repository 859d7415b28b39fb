package goalview

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/costs"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// aGoal is one in its third iteration: the first was judged, the second failed to verify,
// the third is under way.
func aGoal() *forge.View {
	claims := []forge.Claim{
		{Number: 1, Text: "tests pass", Met: true, Note: "ok ./...\x1b[2J", Confidence: 0.95, Evidence: []forge.Citation{
			{Kind: forge.CitationCommand, Ref: "tests", Quote: "ok\nmore", Resolved: true},
			{Kind: forge.CitationFile, Ref: "a.go:1", Resolved: true, Unchanged: true},
		}},
		{
			Number: 2, Text: "no query takes\nmore than 50 ms", Met: true, Note: "one takes 80 ms", Confidence: 0.6, Unproven: "its confidence is 0.60",
			Evidence: []forge.Citation{{Kind: forge.CitationFile, Ref: "b.go:1", Reason: "b.go does not exist"}},
		},
	}
	v := &forge.View{
		Intent: forge.Intent{
			ID: "search", Settings: forge.Settings{
				Title: "Speed up the search", Criteria: []string{"tests pass", "fast"},
				Goal: &forge.GoalOptions{MaxIterations: 5, RawLog: true},
			},
		},
		Tasks: []forge.Task{{ID: "search-001"}},
		Goal: &forge.GoalView{
			GoalSummary: forge.GoalSummary{Iteration: 3, Most: 5, Used: 3, Criteria: 2, Met: 1},
			Text:        []string{claims[0].Text, claims[1].Text},
			Iterations: []forge.Iteration{
				{Number: 1, Attempt: 2, Head: "abc", Summary: &forge.ExecutionSummary{
					Iteration: 1, Approach: "an index", Result: forge.ExecutionSuccess, Reason: "it is there",
					Metadata: forge.SummaryMetadata{ToolsUsed: []string{"Edit"}, TokensUsed: 900}, At: time.Unix(0, 0).UTC(),
				}, Judgment: &forge.Judgment{Claims: claims, Reason: "one is left", NextAction: "cache"}},
				{Number: 2, Attempt: 3, Summary: &forge.ExecutionSummary{
					Iteration: 2, Approach: "a cache", Result: forge.ExecutionFailure, Metadata: forge.SummaryMetadata{ErrorType: "verify_failed", TokensUsed: 700},
					Next: &forge.NextAction{SuggestedAction: "mend the test"},
				}},
				{Number: 3},
			},
			Knowledge: []forge.Knowledge{{ID: "search/k1", Type: forge.KnowledgeLesson, Category: "testing", Content: "the clock is faked"}},
		},
	}
	v.Summary = forge.Summary{
		Key: forge.Key{Project: "p", Intent: "search"}, Title: v.Intent.Title, Status: forge.StatusExecuting,
		RunSummary: forge.RunSummary{
			Activity:  "iteration 3 of 5, 1 of 2 criteria met",
			Goal:      &v.Goal.GoalSummary,
			TaskCount: 1,
		}, Usage: forge.Usage{InputTokens: 5000, CostUSD: 0.5},
	}
	return v
}

// someAttempts are those of aGoal so far.
func someAttempts() []costs.AttemptDetail {
	of := func(task forge.TaskID, step forge.Step, number int, tokens int64, usd float64) costs.AttemptDetail {
		return costs.AttemptDetail{Task: task, Step: step, Attempt: number, OutputTokens: tokens, CostUSD: usd}
	}
	return []costs.AttemptDetail{
		of("", forge.StepIntake, 1, 1000, 1),
		of("search-001", forge.StepExecute, 1, 10, 0.1), // failed, and was tried again
		of("search-001", forge.StepExecute, 2, 20, 0.2),
		of("search-001", forge.StepJudge, 1, 40, 0.4),
		of("search-001", forge.StepExecute, 3, 100, 0.01),
		of("search-001", forge.StepSummarize, 2, 200, 0.02),
		of("search-001", forge.StepExecute, 4, 1000, 0.08),
	}
}

func TestUsedBy(t *testing.T) {
	var got []int64
	for _, u := range usedBy(aGoal().Goal.Iterations, someAttempts()) {
		got = append(got, u.OutputTokens)
	}
	if diff := cmp.Diff([]int64{70, 300, 1000}, got); diff != "" {
		t.Error(diff)
	}
	if used := usedBy(nil, someAttempts()); len(used) != 0 {
		t.Errorf("without iterations: %v", used)
	}
}

func TestPrintGoal(t *testing.T) {
	var out bytes.Buffer
	a := &kit.App{Out: &out, Err: io.Discard, Getenv: func(string) string { return "" }}
	d := of(aGoal(), someAttempts())
	if err := Print(a, &d, render.Table); err != nil {
		t.Fatal(err)
	}
	want := `search  Speed up the search
status:      running: iteration 3 of 5, 1 of 2 criteria met
iterations:  3 of 5
used:        5.0k tokens, $0.50
history:     .e8/history.jsonl
raw logs:    .e8/logs/search

criteria
  met      tests pass (confidence 0.95)
           ok ./...
           command tests: ok ...
           file a.go:1 [so before the change, too]
  not met  no query takes
           more than 50 ms (confidence 0.60)
           one takes 80 ms
           file b.go:1 [not found: b.go does not exist]
           its confidence is 0.60

iterations
NUMBER	APPROACH	RESULT	MET	TOKENS	COST	NEXT
1	an index	success	1/2	70	$0.70	cache
2	a cache	failure	-	300	$0.03	mend the test
3	-	-	-	1.0k	$0.08	-

last judgment
  not complete: one is left
  next: cache

found out
  lesson, testing: the clock is faked
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Before its intake a goal has its criteria, and nothing else.
func TestGoalBeforeIntake(t *testing.T) {
	v := aGoal()
	v.Intent.Goal = nil
	v.Summary.Goal = &forge.GoalSummary{Most: forge.DefaultIterations, Criteria: 2}
	v.Goal = &forge.GoalView{GoalSummary: *v.Summary.Goal, Text: v.Intent.Criteria}
	d := of(v, nil)
	want := []document.Claim{
		{Number: 1, Text: "tests pass", Evidence: []document.Citation{}}, {Number: 2, Text: "fast", Evidence: []document.Citation{}},
	}
	if diff := cmp.Diff(want, d.Criteria); diff != "" || d.MaxIterations != forge.DefaultIterations || d.Judgment != nil || d.Status != Running {
		t.Errorf("%s\n%+v", diff, d)
	}
}
