package records

import "github.com/pfl-forge/pfl-forge"

// claimDoc is the answer of a review to one requirement.
type claimDoc struct {
	// Number is that of the requirement.
	Number int `yaml:"number"`
	// Text is the requirement.
	Text string `yaml:"text"`
	// Met says that it is shown to be met.
	Met bool `yaml:"is_met"`
	// Confidence is the reviewer's, from 0 to 1.
	Confidence float64 `yaml:"confidence"`
	// Note is the reviewer's own text.
	Note string `yaml:"note,omitempty"`
	// Unproven says why it does not count although it was said to be met.
	Unproven string `yaml:"unproven,omitempty"`
	// Evidence are the pieces that were cited.
	Evidence []citationDoc `yaml:"evidence"`
}

// citationDoc is one piece of evidence, with what was found of it.
type citationDoc struct {
	// Kind says what ref refers to.
	Kind string `schema:"CitationKind" yaml:"kind"`
	// Ref is path:line, path:from-to, the name or id of a run, or a path.
	Ref string `yaml:"ref"`
	// Quote is the text that stands there, or nowhere.
	Quote string `yaml:"quote,omitempty"`
	// Resolved says that it was found in the reviewed tree.
	Resolved bool `yaml:"resolved"`
	// Reason says why it was not.
	Reason string `yaml:"reason,omitempty"`
	// Unchanged says that it was so before the change, too.
	Unchanged bool `yaml:"unchanged,omitempty"`
}

// claimDocs returns the claims of a review.
func claimDocs(claims []forge.Claim) []claimDoc {
	var list []claimDoc
	for i := range claims {
		c := &claims[i]
		d := claimDoc{Number: c.Number, Text: c.Text, Met: c.Counts(), Confidence: c.Confidence, Note: c.Note, Unproven: c.Unproven, Evidence: []citationDoc{}}
		for _, e := range c.Evidence {
			d.Evidence = append(d.Evidence, citationDoc{string(e.Kind), e.Ref, e.Quote, e.Resolved, e.Reason, e.Unchanged})
		}
		list = append(list, d)
	}
	return list
}
