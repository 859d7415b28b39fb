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
	// The risk that an analysis judged says nothing here: there was none, or a
	// person let it be made. That of a recipe is its own, and known without a call.
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

// Part is a part of a request that a person lets be analyzed: a text, or a list of texts.
type Part struct {
	// Name is the one that documents have for it.
	Name string
	// value is a string, a forge.Risk or a []string, as the hash has it.
	value any
}

// Texts returns the part as it is shown; none if it is empty.
func (p *Part) Texts() []string {
	if list, ok := p.value.([]string); ok {
		return list
	}
	if text := fmt.Sprint(p.value); text != "" {
		return []string{text}
	}
	return nil
}

// Asked returns all that a person approves who lets a request be analyzed: everything
// that decides how an agent is asked. The hash is made of these parts and of nothing
// else, and whoever approves is shown them, so that the two cannot differ.
func (g *Gate) Asked(in *forge.Intent) []Part {
	return []Part{
		{"title", in.Title}, {"body", in.Body}, {"type", in.Type}, {"risk", g.Declared}, {"recipe", in.Recipe}, {"agent", in.Agent}, {"criteria", in.Criteria},
	}
}

// Text returns the name of the text that a person lets be analyzed: a hash of Asked, so that
// an edit of it needs another approval. Answers, which come later, are a person's word.
func (g *Gate) Text(in *forge.Intent) string {
	// The word in front keeps it apart from the hash of a plan, which an
	// approval names in the same field.
	h := sha256.New()
	fmt.Fprint(h, "text")
	for _, p := range g.Asked(in) {
		fmt.Fprintf(h, " %q", p.value)
	}
	fmt.Fprintln(h)
	return hex.EncodeToString(h.Sum(nil))[:12]
}
