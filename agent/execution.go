package agent

import (
	_ "embed" // the schema

	"github.com/pfl-forge/pfl-forge"
)

// ExecutionSchema is the JSON schema of an Execution.
//
//go:embed schema/execution.json
var ExecutionSchema []byte

// Execution is the answer of an execute call: the report of one iteration towards a
// goal.
type Execution struct {
	Word

	Status       string           `json:"status"` // success, failure or error
	Output       string           `json:"output"`
	Artifacts    []string         `json:"artifacts,omitempty"`
	Metadata     SemanticMetadata `json:"semantic_metadata"`
	Applied      []string         `json:"applied_knowledge,omitempty"` // ids of knowledge
	Observations []Observation    `json:"observations,omitempty"`
}

// SemanticMetadata describes how the agent worked on an iteration.
type SemanticMetadata struct {
	Approach     string   `json:"approach"`
	StrategyTags []string `json:"strategy_tags,omitempty"`
	Discoveries  []string `json:"discoveries,omitempty"`
}

// ParseExecution returns the answer of an execute call, or a *Failure. Texts and lists
// are cut to the bounds of bounds.go. The fields that describe the work as seen in the
// checkout stay empty; the caller fills them in.
func ParseExecution(answer []byte) (forge.Execution, []forge.Observation, error) {
	var a Execution
	if err := decode(answer, &a); err != nil {
		return forge.Execution{}, nil, err
	}
	out := forge.Execution{
		Status: forge.ExecutionStatus(a.Status), Output: clip(a.Output, maxReport), Artifacts: clipList(a.Artifacts),
		Approach: clip(a.Metadata.Approach, maxStatement), StrategyTags: clipList(a.Metadata.StrategyTags), Discoveries: clipList(a.Metadata.Discoveries),
		Applied: clipList(a.Applied),
	}
	switch out.Status {
	case forge.ExecutionSuccess, forge.ExecutionFailure, forge.ExecutionError:
	default:
		return out, nil, invalid("status is %q; must be success, failure or error", a.Status)
	}
	switch {
	case out.Output == "":
		return out, nil, invalid("output is empty; say what was done, and what is left")
	case out.Approach == "":
		return out, nil, invalid("semantic_metadata.approach is empty; say how it was tried, in a sentence or two")
	}
	if _, _, err := a.said(); err != nil {
		return out, nil, err
	}
	obs, err := observations(a.Observations, forge.StepExecute)
	return out, obs, err
}

func checkExecution(answer []byte) error {
	_, _, err := ParseExecution(answer)
	return err
}
