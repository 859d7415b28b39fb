package forge

import "time"

// PastRun is a finished run, as far as later analyses learn from it.
type PastRun struct {
	IntentID IntentID  // the intent
	Run      int       // the run, from 1
	Title    string    // the intent's title
	Type     string    // the intent's type
	Outcome  Outcome   // how the run ended
	Reason   string    // says why it failed; empty if it did not
	Files    []string  // the paths that it was about
	Rules    []string  // the names of the adjustments that were made
	At       time.Time // when it ended, in UTC
}

// Proposal is an intent that a reflection proposed.
type Proposal struct {
	ID     IntentID // the proposed intent
	Title  string   // its title
	Status Status   // how far it is by now
}

// Audit is the report of an audit. Its findings are observations as well.
type Audit struct {
	Summary string      // Summary sums the report up
	Areas   []AuditArea // the areas that were looked at
}

// AuditArea is one of the five areas that an audit looks at: tests, design,
// conventions, debt, documentation.
type AuditArea struct {
	Name     string    // the area's name
	Summary  string    // Summary sums the findings up
	Findings []Finding // possible improvements, in the order of the report
}

// Finding is one thing that could be better.
type Finding struct {
	Title    string     // one line
	Detail   string     // the problem, in words, and what would be better
	Severity Risk       // how much harm it does as it is
	Evidence []Evidence // Evidence shows where
}

// Observed is the answer of observe: patterns in a project's history. Exactly one field is set.
type Observed struct {
	Patterns     []Pattern // Patterns were seen at least twice each
	NothingFound string    // says why there are none; the intent is done then
}

// Pattern is something that was seen at least twice.
type Pattern struct {
	Name        string     // a short name
	Description string     // the thing that comes back, and when
	Evidence    []Evidence // Evidence shows where it was seen
}

// Abstraction is the answer of abstract: skills made of patterns. Exactly one field is set.
type Abstraction struct {
	Skills     []Skill // the drafts
	NothingNew string  // says why there is none; the intent is done then
}

// Skill is the draft of a SKILL.md.
type Skill struct {
	Name        string // made of lower-case words and hyphens
	Description string // says in one line when to use the skill
	Body        string // Markdown
}

// KnowledgeType says what a piece of knowledge is about.
type KnowledgeType string

// The types of knowledge.
const (
	KnowledgeDiscovery  KnowledgeType = "discovery"  // a fact about the code
	KnowledgeLesson     KnowledgeType = "lesson"     // learned from a failure
	KnowledgePattern    KnowledgeType = "pattern"    // a convention that the code follows
	KnowledgeConstraint KnowledgeType = "constraint" // a limit that technology sets
	KnowledgeCodebase   KnowledgeType = "codebase"   // how the code is built
)

// Confidence is how certain a piece of knowledge is.
type Confidence string

// The confidences.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Knowledge is a finding of a goal's iterations that others can use.
type Knowledge struct {
	// ID is unique within the project. It is set when the knowledge is journaled.
	ID string
	// Type is the kind of finding.
	Type KnowledgeType
	// Category is a key word such as error_handling or testing.
	Category string
	// Content is the finding.
	Content string
	// ExampleFile is a path, with lines if they matter.
	ExampleFile string
	// SourceTask is the title of the goal that found it.
	SourceTask string
	// Confidence is how certain it is.
	Confidence Confidence
	// AppliedCount counts the executions that it helped.
	AppliedCount int
	// CreatedAt is when it was journaled, in UTC.
	CreatedAt time.Time
	// Author is the person who wrote it, or corrected it last; empty if no person did.
	Author string
}
