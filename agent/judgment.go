package agent

import (
	"github.com/pfl-forge/pfl-forge"
)

// Judgment is the answer of a judge call: which criteria of a goal are met.
type Judgment struct {
	Criteria   []Claim `json:"criteria"` // every criterion, each once
	Reason     string  `json:"overall_reason"`
	Complete   bool    `json:"is_complete"`
	NextAction string  `json:"suggested_next_action,omitempty"`
}

// ParseJudgment returns the answer of a judge call, or a *Failure if it is malformed. What
// contradicts itself is no failure: the rules decide on it. The caller fills in which commit
// was judged.
func ParseJudgment(answer []byte) (forge.Judgment, error) {
	var a Judgment
	if err := decode(answer, &a); err != nil {
		return forge.Judgment{}, err
	}
	out := forge.Judgment{Complete: a.Complete, Reason: clip(a.Reason, maxStatement), NextAction: clip(a.NextAction, maxStatement)}
	if out.Reason == "" {
		return out, invalid("overall_reason is empty")
	}
	var err error
	out.Claims, err = claims("criteria", a.Criteria)
	return out, err
}
