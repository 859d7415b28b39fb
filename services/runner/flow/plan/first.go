package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// The values of policy.analyze_before_approval, as package config spells them. Any other one
// stands for the default: only what costs nothing is analyzed unasked.
const (
	analyzeAlways = "always"
	analyzeNever  = "never"
)

// Doubtful reports whether the policy decides if a person has to let the intent be analyzed: words
// of another system are in it, or it was declared to be of high risk. Who approved the parent saw
// this one in its plan.
func (g *Gate) Doubtful(in *forge.Intent) bool {
	return !g.Vouched && (in.Source.Foreign() || g.Declared == forge.RiskHigh)
}

// AsksFirst returns why a person has to let the intent be analyzed; empty if no person has to, or
// one has approved exactly this text.
func (g *Gate) AsksFirst(in *forge.Intent, p *forge.Policy) string {
	// The risk that an analysis judged says nothing here: there was none, or a person let it be made. That of a
	// recipe is its own, and known without a call.
	var why string
	switch {
	case !g.Doubtful(in), g.Cleared == g.Text(in), p.AnalyzeBeforeApproval == analyzeAlways,
		in.Recipe != "" && p.AnalyzeBeforeApproval != analyzeNever:
		return ""
	case g.Declared == forge.RiskHigh:
		why = "it was declared to be of high risk"
	case in.Source == forge.SourceSystemReflection:
		why = "it is a reflection on what another system asked for"
	case slices.Contains(p.TrustedOrigins, in.Origin.System):
		return ""
	default:
		why = fmt.Sprintf("it comes from %q, which is not trusted", in.Origin.System)
	}
	return "before it is analyzed: " + why + " (policy.analyze_before_approval)"
}

// Text returns the name of the text that a person lets be analyzed: a hash of everything that decides how an
// agent is asked, so that an edit of it needs another approval. Answers, which come later, are a person's word.
func (g *Gate) Text(in *forge.Intent) string {
	// The word in front keeps it apart from the hash of a plan, which an approval names in the same field.
	h := sha256.New()
	fmt.Fprintf(h, "text %q %q %q %q %q %q %q\n", in.Title, in.Body, in.Type, g.Declared, in.Recipe, in.Agent, in.Criteria)
	return hex.EncodeToString(h.Sum(nil))[:12]
}
