package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of what is kept of what agents say about a goal, so that decisions stay small
// enough to record.
const (
	maxLearned = 10   // pieces of knowledge of one iteration
	maxTaught  = 20   // pieces of its own knowledge that an execution is told
	maxNote    = 1000 // bytes of a text
	maxWord    = 300  // bytes of a path, a tag or the like
	maxListed  = 30   // entries of a list

	maxSummaries = 64 << 10 // bytes of the summaries that a step is told
	maxFound     = 200      // pieces of knowledge that a run tells the project
)

func clipped(text string, most int) string { return strings.ToValidUTF8(shorten(text, most), "") }

func clip(text string) string { return clipped(text, maxWord) }

func clips(list []string) []string {
	var out []string
	for _, text := range list[:min(len(list), maxListed)] {
		out = append(out, clip(text))
	}
	return out
}

// bounded is an execution's report at a size that can be kept.
func bounded(e *forge.Execution) *forge.Execution {
	return &forge.Execution{
		Status: e.Status, Output: clipped(e.Output, 4*maxNote), Artifacts: clips(e.Artifacts), Approach: clipped(e.Approach, maxNote),
		StrategyTags: clips(e.StrategyTags), Discoveries: clips(e.Discoveries), Applied: clips(e.Applied),
		Metadata: forge.SummaryMetadata{
			ToolsUsed: clips(e.Metadata.ToolsUsed), FilesModified: clips(e.Metadata.FilesModified), ErrorType: clip(e.Metadata.ErrorType),
			TokensUsed: e.Metadata.TokensUsed, StrategyTags: clips(e.Metadata.StrategyTags),
		},
	}
}

func boundSummary(sum *forge.ExecutionSummary) {
	sum.Approach, sum.Reason, sum.Artifacts = clipped(sum.Approach, maxNote), clipped(sum.Reason, maxNote), clips(sum.Artifacts)
	if n := sum.Next; n != nil {
		sum.Next = &forge.NextAction{
			SuggestedAction: clipped(n.SuggestedAction, maxNote), Blockers: clips(n.Blockers),
			PartialProgress: clipped(n.PartialProgress, maxNote), PendingItems: clips(n.PendingItems),
		}
	}
}

func boundJudgment(j *forge.Judgment) {
	j.Reason, j.NextAction = clipped(j.Reason, maxNote), clipped(j.NextAction, maxNote)
	j.Evaluations = slices.Clone(j.Evaluations)
	for i := range j.Evaluations {
		j.Evaluations[i].Evidence = clipped(j.Evaluations[i].Evidence, maxNote)
	}
}

// sizeOf is about how many bytes a summary has.
func sizeOf(sum *forge.ExecutionSummary) int {
	n := len(sum.Approach) + len(sum.Reason)
	lists := [][]string{sum.Artifacts}
	if next := sum.Next; next != nil {
		n += len(next.SuggestedAction) + len(next.PartialProgress)
		lists = append(lists, next.Blockers, next.PendingItems)
	}
	for _, list := range lists {
		for _, text := range list {
			n += len(text)
		}
	}
	return n
}

// reworded is a criterion as it was asked for that the goal does not have in these words,
// although nobody was asked; empty if there is none.
func (s *Intent) reworded() string {
	t := s.goalTask()
	if t == nil || len(s.intent.Clarifications) > 0 {
		return ""
	}
	for _, c := range s.intent.Criteria {
		if !slices.Contains(t.Criteria, c) {
			return c
		}
	}
	return ""
}

// goalTask is the task of a goal, or nil.
func (s *Intent) goalTask() *task {
	if len(s.tasks) == 1 && s.tasks[0].loop != nil {
		return s.tasks[0]
	}
	return nil
}

// goalSummary is how far a goal is; before its intake, by what was asked for.
func (s *Intent) goalSummary() *forge.GoalSummary {
	if !s.intent.IsGoal() {
		return nil
	}
	g := &forge.GoalSummary{Most: s.intent.Goal.Iterations(), Criteria: len(s.intent.Criteria), Status: s.loopStatus()}
	if t := s.goalTask(); t != nil {
		g.Iteration, g.Used, g.Criteria = len(t.loop.iterations), t.loop.used, len(t.Criteria)
		if j := t.loop.lastJudgment(); j != nil {
			g.Met = met(j)
		}
	}
	return g
}

// loopStatus is how a goal's loop ended; empty while it goes on.
func (s *Intent) loopStatus() forge.LoopStatus {
	t := s.goalTask()
	switch {
	case s.phase != phaseClosed:
		return ""
	case s.intent.Status == forge.StatusDone:
		return forge.LoopCompleted
	case s.intent.Status == forge.StatusCancelled, s.intent.Status == forge.StatusRejected:
		return forge.LoopCancelled
	case t != nil && t.loop.maxed:
		return forge.LoopMaxIterations
	}
	return forge.LoopError
}

func (s *Intent) goalActivity() string {
	g := s.goalSummary()
	return fmt.Sprintf("iteration %d of %d, %d of %d criteria met", g.Used, g.Most, g.Met, g.Criteria)
}

func (s *Intent) goalView() *forge.GoalView {
	if !s.intent.IsGoal() {
		return nil
	}
	v := &forge.GoalView{
		GoalSummary: *s.goalSummary(), Text: s.intent.Criteria, Knowledge: slices.Clone(s.learned), Applied: slices.Clone(s.applied),
	}
	if t := s.goalTask(); t != nil {
		v.Text, v.Iterations = t.Criteria, slices.Clone(t.loop.iterations)
	}
	if v.Status != "" && v.Status != forge.LoopCompleted {
		v.Error = s.reason
	}
	return v
}
