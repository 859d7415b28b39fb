package agent

import (
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Summarization is the answer of a summarize call: the digest of one iteration that
// later iterations are shown.
type Summarization struct {
	Approach  string      `json:"approach"`
	Result    string      `json:"result"` // success, failure or error
	Reason    string      `json:"reason"`
	Artifacts []string    `json:"artifacts"`
	Next      *NextAction `json:"next,omitempty"` // nil if nothing is left to do
	Knowledge []Knowledge `json:"knowledge"`
}

// NextAction describes the work that an iteration left undone.
type NextAction struct {
	SuggestedAction string   `json:"suggested_action"`
	Blockers        []string `json:"blockers,omitempty"`
	PartialProgress string   `json:"partial_progress,omitempty"`
	// PendingItems lists the parts of the goal that are still missing.
	PendingItems []string `json:"pending_items,omitempty"`
}

// Knowledge is a fact from an iteration that later iterations and intents can use.
type Knowledge struct {
	Type        string `json:"type"`
	Category    string `json:"category"`
	Content     string `json:"content"`
	ExampleFile string `json:"example_file,omitempty"`
	Confidence  string `json:"confidence"` // high, medium or low
}

// ParseSummarization returns the answer of a summarize call, or a *Failure. The caller
// fills in the iteration, its metadata, and the origin of the knowledge.
func ParseSummarization(answer []byte) (forge.Summarization, error) {
	var a Summarization
	var out forge.Summarization
	if err := decode(answer, &a); err != nil {
		return out, err
	}
	s := &out.Summary
	*s = forge.ExecutionSummary{
		Approach: clip(a.Approach, maxStatement), Result: forge.ExecutionStatus(a.Result), Reason: clip(a.Reason, maxStatement), Artifacts: clipList(a.Artifacts),
	}
	switch {
	case s.Approach == "":
		return out, invalid("approach is empty")
	case s.Reason == "":
		return out, invalid("reason is empty")
	case !slices.Contains([]forge.ExecutionStatus{forge.ExecutionSuccess, forge.ExecutionFailure, forge.ExecutionError}, s.Result):
		return out, invalid("result is %q; must be success, failure or error", a.Result)
	}
	if n := a.Next; n != nil {
		s.Next = &forge.NextAction{
			SuggestedAction: clip(n.SuggestedAction, maxStatement), Blockers: clipList(n.Blockers),
			PartialProgress: clip(n.PartialProgress, maxStatement), PendingItems: clipList(n.PendingItems),
		}
		if s.Next.SuggestedAction == "" {
			return out, invalid("next.suggested_action is empty; leave next out if nothing is left to do")
		}
	}
	var err error
	out.Knowledge, err = parseKnowledge(a.Knowledge)
	return out, err
}

// parseKnowledge checks and converts the first maxKnowledge distinct pieces of
// knowledge.
func parseKnowledge(list []Knowledge) ([]forge.Knowledge, error) {
	var out []forge.Knowledge
	for i, k := range list {
		found := forge.Knowledge{
			Type: forge.KnowledgeType(k.Type), Category: clip(term.Line(k.Category), maxWord), Content: clip(k.Content, maxStatement),
			ExampleFile: exampleFile(k.ExampleFile), Confidence: forge.Confidence(k.Confidence),
		}
		switch {
		case !slices.Contains(knowledgeTypes(), found.Type):
			return nil, invalid("knowledge[%d].type is %q; must be discovery, lesson, pattern, constraint or codebase", i, k.Type)
		case found.Category == "":
			return nil, invalid("knowledge[%d].category is empty", i)
		case found.Content == "":
			return nil, invalid("knowledge[%d].content is empty", i)
		case !slices.Contains([]forge.Confidence{forge.ConfidenceHigh, forge.ConfidenceMedium, forge.ConfidenceLow}, found.Confidence):
			return nil, invalid("knowledge[%d].confidence is %q; must be high, medium or low", i, k.Confidence)
		}
		twice := slices.ContainsFunc(out, func(o forge.Knowledge) bool { return term.Line(o.Content) == term.Line(found.Content) })
		if !twice && len(out) < maxKnowledge {
			out = append(out, found)
		}
	}
	return out, nil
}

// knowledgeTypes returns the types that the schema allows.
func knowledgeTypes() []forge.KnowledgeType {
	return []forge.KnowledgeType{
		forge.KnowledgeDiscovery, forge.KnowledgeLesson, forge.KnowledgePattern, forge.KnowledgeConstraint, forge.KnowledgeCodebase,
	}
}

// exampleFile returns a path relative to the repository's root; empty if place is none.
func exampleFile(place string) string {
	place = term.Line(place)
	if place == "" || len(place) > maxWord {
		return ""
	}
	place = path.Clean(place)
	if place == "." || place == ".." || strings.HasPrefix(place, "/") || strings.HasPrefix(place, "../") {
		return ""
	}
	return place
}
