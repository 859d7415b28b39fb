package forge

import "time"

// PastRun is a finished run, as far as others may learn from it.
type PastRun struct {
	IntentID IntentID
	Run      int
	Title    string
	Type     string
	Outcome  Outcome
	Reason   string   // why it failed
	Files    []string // that it was about
	Rules    []string // of the adjustments that were made
	At       time.Time
}

// Proposal is an intent that reflection proposed.
type Proposal struct {
	ID     IntentID
	Title  string
	Status Status
}

// Audit is what an audit found. Its findings are observations as well.
type Audit struct {
	Summary string
	Areas   []AuditArea
}

// AuditArea is one of the five areas that an audit looks at: tests, design,
// conventions, debt, documentation.
type AuditArea struct {
	Name     string
	Summary  string
	Findings []Finding
}

// Finding is something that an audit found to be better.
type Finding struct {
	Title    string
	Detail   string
	Severity Risk // how much harm it does as it is
	Evidence []Evidence
}

// Observed is what observe found: what comes back in a project's history.
type Observed struct {
	Patterns     []Pattern
	NothingFound string // why there are no patterns; then the intent is done
}

// Pattern is something that was seen at least twice.
type Pattern struct {
	Name        string
	Description string
	Evidence    []Evidence
}

// Abstraction is what abstract made of patterns.
type Abstraction struct {
	Skills     []Skill
	NothingNew string // why there is no skill; then the intent is done
}

// Skill is a draft of a SKILL.md.
type Skill struct {
	Name        string // a word or some, with hyphens
	Description string // one line: when to use it
	Body        string // Markdown
}
