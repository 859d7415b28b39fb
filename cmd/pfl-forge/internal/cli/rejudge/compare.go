package rejudge

import (
	"cmp"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// comparison is one question with both answers.
type comparison struct {
	Intent  forge.IntentID `json:"intent"         yaml:"intent"`
	Task    forge.TaskID   `json:"task,omitempty" yaml:"task,omitempty"`
	Step    forge.Step     `json:"step"           yaml:"step"`
	Attempt int            `json:"attempt"        yaml:"attempt"`
	Head    string         `json:"head,omitempty" yaml:"head,omitempty"`

	// Before is the verdict of then, weighed by the rules of now, so that only
	// answers are compared.
	Before verdict  `json:"before"        yaml:"before"`
	Now    *verdict `json:"now,omitempty" yaml:"now,omitempty"` // nil if there is no answer
	// Agrees says that both come to the same verdict.
	Agrees bool `json:"agrees" yaml:"agrees"`
	// Flips are the requirements or criteria on which the answers differ, with the reasons.
	Flips []string `json:"flips,omitempty" yaml:"flips,omitempty"`
	// Error says why there is no answer now.
	Error string `json:"error,omitempty" yaml:"error,omitempty"`

	Tokens       int64   `json:"tokens"        yaml:"tokens"`
	CachedTokens int64   `json:"cached_tokens" yaml:"cached_tokens"`
	CostUSD      float64 `json:"cost_usd"      yaml:"cost_usd"`
}

// report counts comparisons, and has them in the order of the verdicts of then.
type report struct {
	// Found are the verdicts that match; Asked are those that were asked again and answered.
	Found  int `json:"found"  yaml:"found"`
	Asked  int `json:"asked"  yaml:"asked"`
	Agree  int `json:"agree"  yaml:"agree"`
	Failed int `json:"failed" yaml:"failed"` // there was no answer
	// Laxer are those that are approved or complete now and were not; Stricter the other way round.
	Laxer    int `json:"laxer"    yaml:"laxer"`
	Stricter int `json:"stricter" yaml:"stricter"`
	// Unasked were left out because the money was used up.
	Unasked int     `json:"unasked"  yaml:"unasked"`
	CostUSD float64 `json:"cost_usd" yaml:"cost_usd"`

	Verdicts []comparison `json:"verdicts" yaml:"verdicts"`
}

// add adds a comparison.
func (r *report) add(c *comparison) {
	r.Verdicts = append(r.Verdicts, *c)
	r.CostUSD += c.CostUSD
	switch {
	case c.Now == nil:
		r.Failed++
		return
	case c.Agrees:
		r.Agree++
	case c.Now.passes():
		r.Laxer++
	default:
		r.Stricter++
	}
	r.Asked++
}

// passes reports whether the verdict lets the change, or the goal, pass.
func (v *verdict) passes() bool {
	return v.Verdict == string(forge.VerdictApproved) || v.Verdict == "complete"
}

// compare reports whether two answers to a question come to the same verdict,
// and on which claims they differ. Two may agree on the verdict and differ on
// its reasons. noun names what claims are about.
func compare(noun string, before, now *verdict) (agrees bool, flips []string) {
	counts := map[int]*forge.Claim{}
	for i := range before.claims {
		counts[before.claims[i].Number] = &before.claims[i]
	}
	for i := range now.claims {
		is := &now.claims[i]
		was := counts[is.Number]
		if was == nil || was.Counts() == is.Counts() {
			continue
		}
		flips = append(flips, fmt.Sprintf("%s %d (%s): %s, and now %s", noun, is.Number, is.Text, state(was), state(is)))
	}
	return before.passes() == now.passes(), flips
}

// state returns whether a claim counts, and why.
func state(c *forge.Claim) string {
	if c.Counts() {
		return "met: " + c.Note
	}
	return "not met: " + cmp.Or(c.Unproven, c.Note)
}
