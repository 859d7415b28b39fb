package agent

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Claim is the part of a review or judgment that answers one requirement or criterion.
type Claim struct {
	// Number is that of the requirement or criterion, from 1.
	Number int `json:"number"`
	// Met is the model's word.
	Met bool `json:"met"`
	// Confidence is how certain the model is of Met, from 0 to 1.
	Confidence float64 `json:"confidence"`
	// Evidence has the citations that are looked up by code; none if it is not met.
	Evidence []Citation `json:"evidence"`
	// Note says in words what the evidence shows, or what is missing.
	Note string `json:"note"`
}

// Citation is a piece of evidence, as forge.Citation describes it.
type Citation struct {
	// Kind is command, file, diff or absence.
	Kind string `json:"kind"`
	// Ref is path:line, path:from-to, the name or id of a run, or a path.
	Ref string `json:"ref"`
	// Quote is the text that stands there, or that must not.
	Quote string `json:"quote"`
}

// Bounds of the claims of one answer.
const (
	maxClaims    = 100
	maxCitations = 20 // of a claim
	maxRef       = 4200
	maxChecks    = 50 // that a review asks for
)

// claims checks and converts the claims of an answer. at is their field, for errors. Whether they
// answer what was asked, and what their evidence is worth, is decided elsewhere.
func claims(at string, in []Claim) ([]forge.Claim, error) {
	if len(in) > maxClaims {
		return nil, invalid("%s has %d entries; answer each number once", at, len(in))
	}
	var out []forge.Claim
	for i, c := range in {
		at := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case !(c.Confidence >= 0 && c.Confidence <= 1):
			return nil, invalid("%s.confidence is %v; must be 0 to 1", at, c.Confidence)
		case len(c.Evidence) > maxCitations:
			return nil, invalid("%s.evidence has %d entries; cite the best, at most %d", at, len(c.Evidence), maxCitations)
		}
		claim := forge.Claim{Number: c.Number, Met: c.Met, Confidence: c.Confidence, Note: clip(c.Note, maxStatement)}
		for n, e := range c.Evidence {
			kind := forge.CitationKind(e.Kind)
			switch {
			case !slices.Contains(citationKinds, kind):
				return nil, invalid("%s.evidence[%d].kind is %q; must be command, file, diff or absence", at, n, short(e.Kind))
			case len(e.Ref) > maxRef:
				return nil, invalid("%s.evidence[%d].ref has %d bytes; at most %d are allowed", at, n, len(e.Ref), maxRef)
			}
			claim.Evidence = append(claim.Evidence, forge.Citation{Kind: kind, Ref: e.Ref, Quote: e.Quote})
		}
		out = append(out, claim)
	}
	return out, nil
}

// maxRequirements bounds the requirements of one task.
const maxRequirements = forge.MaxCriteria

// requirements checks the requirements of a planned task. at is the task's field, for errors.
func requirements(at string, in []string) ([]string, error) {
	if len(in) > maxRequirements {
		return nil, invalid("%s.requirements has %d entries; at most %d are allowed", at, len(in), maxRequirements)
	}
	var out []string
	for i, text := range in {
		switch text = term.Line(text); {
		case text == "":
			return nil, invalid("%s.requirements[%d] is empty", at, i)
		case len(text) > forge.MaxCriterion:
			return nil, invalid("%s.requirements[%d] has %d bytes; at most %d are allowed", at, i, len(text), forge.MaxCriterion)
		case slices.Contains(out, text):
			return nil, invalid("%s.requirements[%d] repeats another one", at, i)
		}
		out = append(out, text)
	}
	return out, nil
}

// citationKinds lists the kinds of citations that an answer can have.
var citationKinds = []forge.CitationKind{forge.CitationCommand, forge.CitationFile, forge.CitationDiff, forge.CitationAbsence}
