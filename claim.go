package forge

// Claim is the word of a reviewer on one requirement of a task, or of a judge on
// one criterion of a goal. It counts only as far as its evidence resolves.
type Claim struct {
	// Number is that of the requirement or criterion, from 1.
	Number int
	// Text repeats the requirement or criterion; empty if nothing has that number.
	Text string
	// Met says whether it is met, in the model's word.
	Met bool
	// Confidence is how certain the model is of Met, 0 to 1.
	Confidence float64
	// Note says in words what was seen, or what is missing.
	Note string
	// Evidence are the pieces that the model cites.
	Evidence []Citation
	// Unproven says why the claim does not count although it says met. Only the
	// rules set it; empty until they did, and if it counts.
	Unproven string
	// Run is that of the command which decides a criterion; nil where a model answered.
	Run *CheckRun
}

// CitationKind says what a citation refers to.
type CitationKind string

// The kinds of citations.
const (
	CitationCommand CitationKind = "command" // a run of one of the project's commands on the judged tree, which passed
	CitationFile    CitationKind = "file"    // lines of a file of the judged tree
	CitationDiff    CitationKind = "diff"    // lines that the change adds or removes
	CitationAbsence CitationKind = "absence" // a path or text that the judged tree does not have
)

// Citation is one piece of evidence of a claim. Code looks it up in exactly the
// tree that is judged.
type Citation struct {
	// Kind says what Ref refers to.
	Kind CitationKind
	// Ref is path:line or path:from-to, the name or id of a run, or the path
	// that is absent or searched.
	Ref string
	// Quote is the text that stands there, or that must not stand anywhere below Ref.
	Quote string
	// Resolved says that code found it as it is cited.
	Resolved bool
	// Reason says why it was not found; empty if it was, or has not been looked up yet.
	Reason string
	// Unchanged says that it was so before the change, too: by itself it shows
	// nothing of what the change does.
	Unchanged bool
}

// String returns the citation on one line: "file a.go:12".
func (c *Citation) String() string { return string(c.Kind) + " " + c.Ref }

// DefaultMinConfidence is the confidence that a claim needs where the project says nothing.
const DefaultMinConfidence = 0.7

// Counts reports whether the rules let the claim stand for its requirement or criterion.
func (c *Claim) Counts() bool { return c.Met && c.Unproven == "" }
