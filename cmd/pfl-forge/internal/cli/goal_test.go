package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// aGoal is one in its third iteration: the first was judged, the second failed to verify,
// the third is under way.
func aGoal() *forge.View {
	evaluations := []forge.Evaluation{
		{Criterion: "tests pass", Met: true, Evidence: "ok ./...\x1b[2J", Confidence: 0.95},
		{Criterion: "no query takes\nmore than 50 ms", Evidence: "one takes 80 ms", Confidence: 0.6},
	}
	v := &forge.View{
		Intent: forge.Intent{
			ID: "search", Title: "Speed up the search", Criteria: []string{"tests pass", "fast"},
			Goal: &forge.GoalOptions{MaxIterations: 5, RawLog: true},
		},
		Tasks: []forge.Task{{ID: "search-001"}},
		Goal: &forge.GoalView{
			GoalSummary: forge.GoalSummary{Iteration: 3, Most: 5, Used: 3, Criteria: 2, Met: 1},
			Text:        []string{evaluations[0].Criterion, evaluations[1].Criterion},
			Iterations: []forge.Iteration{
				{Number: 1, Attempt: 2, Head: "abc", Summary: &forge.ExecutionSummary{
					Iteration: 1, Approach: "an index", Result: forge.ExecutionSuccess, Reason: "it is there",
					Metadata: forge.SummaryMetadata{ToolsUsed: []string{"Edit"}, TokensUsed: 900}, At: time.Unix(0, 0).UTC(),
				}, Judgment: &forge.Judgment{Evaluations: evaluations, Reason: "one is left", NextAction: "cache"}},
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
		Activity: "iteration 3 of 5, 1 of 2 criteria met", Goal: &v.Goal.GoalSummary,
		Usage: forge.Usage{InputTokens: 5000, CostUSD: 0.5}, TaskCount: 1,
	}
	return v
}

// someAttempts are those of aGoal so far.
func someAttempts() []attemptDetail {
	of := func(task forge.TaskID, step forge.Step, number int, tokens int64, usd float64) attemptDetail {
		return attemptDetail{Task: task, Step: step, Attempt: number, OutputTokens: tokens, CostUSD: usd}
	}
	return []attemptDetail{
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
	a := &app{out: &out, err: io.Discard, getenv: func(string) string { return "" }}
	d := goalOf(aGoal(), someAttempts())
	if err := a.printGoal(&d, render.Table); err != nil {
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
  not met  no query takes
           more than 50 ms (confidence 0.60)
           one takes 80 ms

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
	d := goalOf(v, nil)
	want := []evaluation{{Criterion: "tests pass"}, {Criterion: "fast"}}
	if diff := cmp.Diff(want, d.Criteria); diff != "" || d.MaxIterations != forge.DefaultIterations || d.Judgment != nil || d.Status != goalRunning {
		t.Errorf("%s\n%+v", diff, d)
	}
}

func TestGoalOutcome(t *testing.T) {
	for want, s := range map[string]forge.Summary{
		"completed 0":      {Status: forge.StatusDone, Goal: &forge.GoalSummary{Status: forge.LoopCompleted}},
		"max_iterations 2": {Status: forge.StatusError, Waiting: forge.WaitingFailed, Goal: &forge.GoalSummary{Status: forge.LoopMaxIterations}},
		"error 2":          {Status: forge.StatusError, Waiting: forge.WaitingFailed, Goal: &forge.GoalSummary{Status: forge.LoopError}},
		"cancelled 2":      {Status: forge.StatusRejected, Goal: &forge.GoalSummary{Status: forge.LoopCancelled}},
		"running 3":        {Status: forge.StatusExecuting, Goal: &forge.GoalSummary{}},
		"waiting 3":        {Status: forge.StatusProposed, Waiting: forge.WaitingApproval, Goal: &forge.GoalSummary{}},
	} {
		v := aGoal()
		v.Goal, v.Summary = &forge.GoalView{GoalSummary: *s.Goal}, s
		d := goalOf(v, nil)
		code := 0
		if e, ok := errors.AsType[exit](goalOutcome(&d)); ok {
			code = int(e)
		}
		status, number, _ := strings.Cut(want, " ")
		if d.Status != status || string(rune('0'+code)) != number {
			t.Errorf("%s, exit code %d, want %s", d.Status, code, want)
		}
	}
}

func TestGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		waiting forge.Waiting
		again   forge.Retry
		want    string // of the event, or of the error
	}{
		"paused":                {forge.WaitingPaused, forge.Retry{}, "resume"},
		"paused, with a hint":   {forge.WaitingPaused, forge.Retry{Instructions: "x"}, "search: is paused, and goes on as it was: leave out --with and --budget"},
		"failed":                {forge.WaitingFailed, forge.Retry{Instructions: "x"}, "retry x"},
		"waits for money":       {forge.WaitingBudget, forge.Retry{BudgetUSD: 2}, "retry "},
		"waits for approval":    {forge.WaitingApproval, forge.Retry{}, "search: iteration 3 of 5, 1 of 2 criteria met; `pfl-forge approve search`"},
		"nothing to go on with": {"", forge.Retry{}, "retry "},
	} {
		v := aGoal()
		v.Summary.Waiting = c.waiting
		w, err := ofGoals(goesOn(&c.again))(v, "")
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case forge.As[*forge.Resume](w.ev.Message) != nil:
			got = "resume"
		case forge.As[*forge.Retry](w.ev.Message) != nil:
			got = "retry " + forge.As[*forge.Retry](w.ev.Message).Instructions
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	plain := &forge.View{Intent: forge.Intent{ID: "plain"}}
	if _, err := ofGoals(goesOn(&forge.Retry{}))(plain, ""); err == nil || !strings.Contains(err.Error(), "plain is no goal") {
		t.Errorf("an intent without criteria: %v", err)
	}
}
