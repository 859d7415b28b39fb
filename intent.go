package forge

import "time"

// Intent is a change that somebody wants.
type Intent struct {
	ID             IntentID
	Project        ProjectID
	Title          string
	Body           string
	Type           string // feature, fix, refactor, test, audit, ...: an open set; empty until judged
	Source         Source
	Risk           Risk // the highest of what was declared and what was judged
	Status         Status
	Parent         IntentID // empty unless this is a part of a larger intent
	Depth          int      // how many parents are above it
	Generation     int      // how many reflections lie between it and what a person or system wanted
	DependsOn      []IntentID
	Clarifications []Clarification
	Criteria       []string // makes it a goal
	Goal           *GoalOptions
	Labels         []string
	Priority       int
	Origin         Origin
	Agent          string            // back end; empty means the project's default
	BudgetUSD      float64           // 0 means the project's default
	Recipe         string            // a named recipe of the repository, for the recipe agent
	With           map[string]string // values of the recipe's parameters
	CreatedAt      time.Time
}

// NeedsClarification reports whether some question is not answered yet.
func (i *Intent) NeedsClarification() bool {
	for _, c := range i.Clarifications {
		if c.Answer == nil {
			return true
		}
	}
	return false
}

// The types of intents that have a flow of their own.
const (
	TypeAudit           = "audit"            // look and report
	TypeSkillExtraction = "skill_extraction" // make skills of patterns in the project's history
)

// Clarification is a question to a person. A nil Answer means: not answered.
type Clarification struct {
	Question         string
	Context          string
	SuggestedAnswers []string
	Param            string // the recipe parameter that the answer fills, if any
	Answer           *string
}

// Origin says who published an intent. The same System and EventID are the same
// intent, however far apart they arrive.
type Origin struct {
	System  string
	EventID string
	Actor   string // the person or account behind it
}

// Source is where an intent comes from.
type Source string

// The sources.
const (
	SourceHuman      Source = "human"
	SourceReflection Source = "reflection"
	SourceSystem     Source = "system"
)

// Risk is how much harm a change could do. Empty means not judged.
type Risk string

// The risks, in ascending order.
const (
	RiskLow  Risk = "low"
	RiskMed  Risk = "med"
	RiskHigh Risk = "high"
)

// Rank orders risks: 0 for not judged, 3 for high.
func (r Risk) Rank() int {
	switch r {
	case RiskLow:
		return 1
	case RiskMed:
		return 2
	case RiskHigh:
		return 3
	}
	return 0
}

// MaxRisk returns the higher of two risks.
func MaxRisk(a, b Risk) Risk {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// Status is how far an intent has come.
//
//	proposed -> approved -> executing -> done | blocked | error
//	any but done -> rejected | cancelled, by a person
//	blocked | error -> executing or proposed, by a person's retry
type Status string

// The statuses of an intent.
const (
	StatusProposed  Status = "proposed"
	StatusApproved  Status = "approved"
	StatusExecuting Status = "executing"
	StatusDone      Status = "done"      // every task done
	StatusBlocked   Status = "blocked"   // some task, or a dependency, failed
	StatusError     Status = "error"     // every task failed
	StatusRejected  Status = "rejected"  // a person refused it
	StatusCancelled Status = "cancelled" // a person stopped it
)

// Ended reports whether nothing more happens to an intent by itself.
func (s Status) Ended() bool {
	switch s {
	case StatusDone, StatusBlocked, StatusError, StatusRejected, StatusCancelled:
		return true
	default:
		return false
	}
}

// Failed reports whether a person has to look at an ended intent.
func (s Status) Failed() bool { return s == StatusBlocked || s == StatusError }
