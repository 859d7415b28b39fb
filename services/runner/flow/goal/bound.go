package goal

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Bounds of the texts and lists that agents report about a goal. They keep decisions
// small enough to record.
const (
	// maxLearned bounds the pieces of knowledge of one iteration.
	maxLearned = 10
	// maxTaught bounds the pieces of its own knowledge that an execution is
	// told.
	maxTaught = 20
	// maxText bounds a text, in bytes.
	maxText = 1000
	// maxWord bounds a path, a tag or the like, in bytes.
	maxWord = 300
	// maxListed bounds the entries of a list.
	maxListed = 30

	// maxSummaries bounds the summaries that a step is told, in bytes; the
	// oldest are left out.
	maxSummaries = 64 << 10
	// maxPublished bounds the pieces of knowledge that a run tells the project.
	maxPublished = 200
)

// clipped returns a text of at most so many bytes, cut between characters.
func clipped(text string, most int) string { return strings.ToValidUTF8(rule.Shorten(text, most), "") }

// clip bounds a path, a tag or the like.
func clip(text string) string { return clipped(text, maxWord) }

// clips bounds a list and each of its entries.
func clips(list []string) []string {
	var out []string
	for _, text := range list[:min(len(list), maxListed)] {
		out = append(out, clip(text))
	}
	return out
}

// bounded returns an execution's report at a size that can be kept.
func bounded(e *forge.Execution) *forge.Execution {
	return &forge.Execution{
		Status: e.Status, Output: clipped(e.Output, 4*maxText), Artifacts: clips(e.Artifacts), Approach: clipped(e.Approach, maxText),
		StrategyTags: clips(e.StrategyTags), Discoveries: clips(e.Discoveries), Applied: clips(e.Applied),
		Metadata: forge.SummaryMetadata{
			ToolsUsed: clips(e.Metadata.ToolsUsed), FilesModified: clips(e.Metadata.FilesModified), ErrorType: clip(e.Metadata.ErrorType),
			TokensUsed: e.Metadata.TokensUsed, StrategyTags: clips(e.Metadata.StrategyTags),
		},
	}
}

// boundSummary cuts the texts of a summary to a size that the journal can keep.
func boundSummary(sum *forge.ExecutionSummary) {
	sum.Approach, sum.Reason, sum.Artifacts = clipped(sum.Approach, maxText), clipped(sum.Reason, maxText), clips(sum.Artifacts)
	if n := sum.Next; n != nil {
		sum.Next = &forge.NextAction{
			SuggestedAction: clipped(n.SuggestedAction, maxText), Blockers: clips(n.Blockers),
			PartialProgress: clipped(n.PartialProgress, maxText), PendingItems: clips(n.PendingItems),
		}
	}
}

// boundJudgment cuts the texts of a judgment, and leaves that of the event as
// it is.
func boundJudgment(j *forge.Judgment) {
	j.Reason, j.NextAction = clipped(j.Reason, maxText), clipped(j.NextAction, maxText)
}

// sizeOf returns about how many bytes a summary has.
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
