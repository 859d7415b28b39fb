package goal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// However much agents say, and however long a goal is worked on, what its steps are told
// fits into a record, with room for the rest.
func TestWhatAGoalIsToldIsBounded(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	many := make([]string, 1000)
	for i := range many {
		many[i] = long
	}
	metadata := forge.SummaryMetadata{ToolsUsed: many, FilesModified: many, ErrorType: long, StrategyTags: many}
	said := &forge.Execution{
		Output: long, Artifacts: many, Approach: long, StrategyTags: many, Discoveries: many, Applied: many, Metadata: metadata,
	}
	g := Strategy{State: &State{}, Options: &forge.GoalOptions{MaxIterations: forge.MaxIterations, HistoryContext: forge.MaxHistoryContext}}
	task := &task.Task{}
	for i := range forge.MaxCriteria {
		task.Criteria = append(task.Criteria, fmt.Sprintf("%03d%s", i, strings.Repeat("c", forge.MaxCriterion-3)))
	}
	var claims []forge.Claim
	for n, c := range task.Criteria {
		claim := forge.Claim{Number: n + 1, Text: c, Met: true, Confidence: 1, Note: long}
		for range 25 {
			claim.Evidence = append(claim.Evidence, forge.Citation{Kind: forge.CitationFile, Ref: long, Quote: long, Reason: long})
		}
		claims = append(claims, claim)
	}
	for i := range forge.MaxIterations {
		g.Execution = bounded(said)
		sum := forge.ExecutionSummary{
			Iteration: i + 1, Result: forge.ExecutionFailure, Approach: long, Reason: long, Artifacts: many, Metadata: g.Execution.Metadata,
			Next: &forge.NextAction{SuggestedAction: long, Blockers: many, PartialProgress: long, PendingItems: many},
		}
		boundSummary(&sum)
		j := forge.Judgment{Reason: long, NextAction: long}
		j.Claims = claims
		Decide(&j, task.Criteria, 0.7)
		boundJudgment(&j)
		g.Iterations = append(g.Iterations, forge.Iteration{Number: i + 1, Summary: &sum, Judgment: &j})
	}
	for step, most := range map[forge.Step]int{forge.StepExecute: 2 << 20, forge.StepSummarize: 2 << 20, forge.StepJudge: 256 << 10} {
		data, err := json.Marshal(g.Loop(task, step))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", step, len(data))
		if len(data) > most {
			t.Errorf("%s is told %d bytes, more than %d", step, len(data), most)
		}
	}
}
