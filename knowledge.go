package forge

import "time"

// PastRun is a finished run, as far as later analyses learn from it.
type PastRun struct {
	// IntentID is the intent.
	IntentID IntentID
	// Run is the run, from 1.
	Run int
	// Title is the intent's title.
	Title string
	// Type is the intent's type.
	Type string
	// Outcome is how the run ended.
	Outcome Outcome
	// Reason says why it failed; empty if it did not.
	Reason string
	// Files are the paths that it was about.
	Files []string
	// Rules are the names of the adjustments that were made.
	Rules []string
	// At is when it ended, in UTC.
	At time.Time
}

// Proposal is an intent that a reflection proposed.
type Proposal struct {
	// ID is the proposed intent.
	ID IntentID
	// Title is its title.
	Title string
	// Status is how far it is by now.
	Status Status
}

// Audit is the report of an audit. Its findings are observations as well.
type Audit struct {
	// Summary sums the report up.
	Summary string
	// Areas are the areas that were looked at.
	Areas []AuditArea
}

// AuditArea is one of the five areas that an audit looks at: tests, design,
// conventions, debt, documentation.
type AuditArea struct {
	// Name is the area's name.
	Name string
	// Summary sums the findings up.
	Summary string
	// Findings are possible improvements, in the order of the report.
	Findings []Finding
}

// Finding is one thing that could be better.
type Finding struct {
	// Title is one line.
	Title string
	// Detail says what is wrong and what would be better.
	Detail string
	// Severity is how much harm it does as it is.
	Severity Risk
	// Evidence shows where.
	Evidence []Evidence
}

// Observed is the answer of observe: patterns in a project's history. Exactly one
// field is set.
type Observed struct {
	// Patterns were seen at least twice each.
	Patterns []Pattern
	// NothingFound says why there are none; the intent is done then.
	NothingFound string
}

// Pattern is something that was seen at least twice.
type Pattern struct {
	// Name is a short name.
	Name string
	// Description says what comes back, and when.
	Description string
	// Evidence shows where it was seen.
	Evidence []Evidence
}

// Abstraction is the answer of abstract: skills made of patterns. Exactly one
// field is set.
type Abstraction struct {
	// Skills are the drafts.
	Skills []Skill
	// NothingNew says why there is none; the intent is done then.
	NothingNew string
}

// Skill is the draft of a SKILL.md.
type Skill struct {
	// Name is made of lower-case words and hyphens.
	Name string
	// Description says in one line when to use the skill.
	Description string
	// Body is Markdown.
	Body string
}
