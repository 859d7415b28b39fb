package forge

import (
	"math"
	"slices"
	"time"
)

// Intent is the request for a change. It is the document that people, systems
// and reflections write; what pfl-forge makes of it is in Task, Summary and
// History.
type Intent struct {
	// ID names the intent within its project. Whoever submits it chooses the
	// id; for what other systems submit it follows from Origin.
	ID IntentID
	// Project is the repository that is to change.
	Project ProjectID
	// Settings hold the submitter's values, or what an analysis or an edit made of them.
	Settings
	// Source is where the intent comes from.
	Source Source
	// Status is how far the intent is. Only the rules set it.
	Status Status
	// Parent is the intent that this one is a child of; empty if it is none.
	Parent IntentID
	// Depth counts the intents above it: 0 without a parent.
	Depth int
	// Generation counts the reflections between the intent and what a person or system wanted.
	Generation int
	// Clarifications are the questions that were asked, in order, with the answers.
	Clarifications []Clarification
	// Origin says who published the intent.
	Origin Origin
	// Requesters are the people whose words are in the intent, those of its
	// parent, or of what it reflects on, included.
	Requesters []Identity
	// CreatedAt is when the intent was submitted, in UTC.
	CreatedAt time.Time
}

// Settings hold the fields of an intent that its submitter may set. Package document has
// the table of their names and rules.
type Settings struct {
	Title string // one line
	Body  string // describes the wanted change, in Markdown
	// Type says which flow the intent takes: audit and skill_extraction have their
	// own, any other one (feature, fix, refactor, test, ...) takes the default.
	// Empty until an analysis judges it.
	Type string
	// Risk is the higher of what was declared and what an analysis judged. Empty until then.
	Risk Risk
	// DependsOn are intents of the project that have to be done before tasks begin.
	DependsOn []IntentID
	// Criteria make the intent a goal: it is done when each of them is met.
	Criteria []string
	// Checks are those of the criteria that a command decides, in their order.
	Checks []Check
	// Goal says how a goal is worked on; nil for the defaults, and without Criteria.
	Goal *GoalOptions
	// Attributes are for people to sort and find intents by in lists.
	Attributes
	Agent     string            // the back end that works on the intent; empty for the project's choice
	BudgetUSD float64           // bounds the cost of all runs of the intent, in US dollars; 0 for the project's default
	Recipe    string            // the recipe of the repository that makes the change; empty if agents make it
	With      map[string]string // the values of the recipe's parameters, by name
}

// Attributes are the fields of an intent that lists show as they were submitted. No
// rule reads them, and child intents have their parent's. An intent embeds them and
// its Summary has a copy, so that a field added here is in both.
type Attributes struct {
	// Labels are for people and systems to find intents by: lines of at most MaxName bytes.
	Labels []string
	// Priority is a number for people and scripts; pfl-forge sorts nothing by it.
	Priority int
	// Team names the people that the intent belongs to, in one line of at most
	// MaxName bytes; empty for none.
	Team string
}

// MaxName bounds the name of a team, and a label, in bytes.
const MaxName = 100

// validate returns the first thing that is wrong with the attributes, or nil.
func (a *Attributes) validate() *FieldError {
	if a.Priority < math.MinInt32 || a.Priority > math.MaxInt32 {
		return &FieldError{"priority", "is out of range"}
	}
	if e := validLine("team", a.Team, MaxName); a.Team != "" && e != nil {
		return e
	}
	for _, l := range a.Labels {
		if e := validLine("labels", l, MaxName); e != nil {
			return e
		}
	}
	return nil
}

// Scripted reports whether a recipe alone works on the intent, as a person
// wished: nothing that it runs is a model's or another system's.
func (i *Intent) Scripted() bool {
	return i.Source == SourceHuman && i.Parent == "" && i.Recipe != "" && (i.Agent == "" || i.Agent == "recipe")
}

// NeedsClarification reports whether some question is not answered yet.
func (i *Intent) NeedsClarification() bool {
	return slices.ContainsFunc(i.Clarifications, func(c Clarification) bool { return c.Answer == nil })
}

// The types of intents that have a flow of their own.
const (
	// TypeAudit looks at the whole repository and reports. It changes nothing.
	TypeAudit = "audit"
	// TypeSkillExtraction makes skills of patterns that recur in the project's history.
	TypeSkillExtraction = "skill_extraction"
)

// Clarification is a question to a person, and its answer.
type Clarification struct {
	// Question is one question.
	Question string
	// Context says why it is asked.
	Context string
	// SuggestedAnswers are answers to choose from; any other one counts, too.
	SuggestedAnswers []string
	// Param is the recipe parameter that the answer fills; empty if none.
	Param string
	// Answer is nil until the question is answered.
	Answer *string
	// Task is the one whose agent waits for the answer; empty if the whole intent does.
	Task TaskID
}

// Origin says who published an intent. Two intents with the same System and
// EventID are one intent, however far apart they arrive.
type Origin struct {
	// System is the publisher, such as draft or the name of a CI system.
	System string
	// EventID is the publisher's own id of what it published.
	EventID string
	// Actor is the person or account behind it, as the publisher says; empty if it does not.
	Actor string
}

// Identity is the name of a person. Unless it is proven, someone else has only
// claimed that it is theirs.
type Identity struct {
	// Name is as the server knows the person, or as it was claimed.
	Name string
	// Proven says that the server let only that person send what they said.
	Proven bool
}

// Source is where an intent comes from.
type Source string

// The sources.
const (
	SourceHuman      Source = "human"
	SourceReflection Source = "reflection"
	SourceSystem     Source = "system"
	// SourceSystemReflection is a reflection on what another system asked for, however far back.
	SourceSystemReflection Source = "system_reflection"
)

// Foreign reports whether words of another system are in an intent of this source.
func (s Source) Foreign() bool { return s == SourceSystem || s == SourceSystemReflection }

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
	return slices.Index([]Risk{RiskLow, RiskMed, RiskHigh}, r) + 1
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
	// StatusProposed: it was accepted. It is analyzed, or waits for answers or an approval.
	StatusProposed Status = "proposed"
	// StatusApproved: its plan may be carried out.
	StatusApproved Status = "approved"
	// StatusExecuting: work on its tasks or child intents has begun.
	StatusExecuting Status = "executing"
	// StatusDone: every task is done.
	StatusDone Status = "done"
	// StatusBlocked: some of its tasks, or an intent that it depends on, failed.
	StatusBlocked Status = "blocked"
	// StatusError: all of it failed.
	StatusError Status = "error"
	// StatusRejected: a person refused it.
	StatusRejected Status = "rejected"
	// StatusCancelled: a person stopped it.
	StatusCancelled Status = "cancelled"
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
