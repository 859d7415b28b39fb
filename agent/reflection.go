package agent

import (
	"github.com/pfl-forge/pfl-forge"
)

// maxProposals is the most proposals of one answer; a project's own bound is lower.
const maxProposals = 50

// Reflection is the answer of a reflect call.
type Reflection struct {
	Proposals    []Proposal    `json:"proposals"`
	Observations []Observation `json:"observations,omitempty"`
}

// Proposal is an intent that reflection suggests to a person.
type Proposal struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Type  string `json:"type"`
	Risk  string `json:"risk"` // low, med or high
}

// ParseReflection returns the proposals of a reflect call as intents without id and
// project, or a *Failure.
func ParseReflection(answer []byte) ([]forge.Intent, []forge.Observation, error) {
	var a Reflection
	if err := decode(answer, &a); err != nil {
		return nil, nil, err
	}
	if len(a.Proposals) > maxProposals {
		return nil, nil, invalid("has %d proposals; at most %d are allowed", len(a.Proposals), maxProposals)
	}
	var out []forge.Intent
	for i, p := range a.Proposals {
		in, err := parseIntent("proposals", i, p.Title, p.Body, p.Type, p.Risk)
		if err != nil {
			return nil, nil, err
		}
		if in.Type == "" || in.Risk == "" {
			return nil, nil, invalid("proposals[%d] needs a type and a risk", i)
		}
		out = append(out, in)
	}
	obs, err := observations(a.Observations, forge.StepReflect)
	return out, obs, err
}
