package forge

import "time"

// Task is one unit of implementation: one branch, one reviewed change.
type Task struct {
	ID            TaskID
	IntentID      IntentID
	Title         string
	Plan          string
	RelevantFiles []string
	Steps         []string // implementation steps
	Context       string
	Complexity    Complexity
	DependsOn     []TaskID // of the same intent
	Status        TaskStatus
	Name          string // the recipe's name of the task, if any
	Item          string // the line of a recipe's each that it stands for, if any
	Attempts      int    // implementations so far
	Base          string // commit that Head was made on
	Head          string // last commit produced
	Commit        string // commit on the base branch, once integrated
	Failure       string // why it failed, or why it waits
	Write         *FileWrite
	Criteria      []string // of a goal's task: when it is done
}

// Complexity picks the model that implements a task.
type Complexity string

// The complexities.
const (
	ComplexityLow  Complexity = "low"
	ComplexityMed  Complexity = "med"
	ComplexityHigh Complexity = "high"
)

// TaskStatus is how far a task has come: pending -> implementing -> done | failed.
type TaskStatus string

// The statuses of a task.
const (
	TaskPending      TaskStatus = "pending"
	TaskImplementing TaskStatus = "implementing"
	TaskDone         TaskStatus = "done"
	TaskFailed       TaskStatus = "failed"
)

// Verdict is what a review says.
type Verdict string

// The verdicts.
const (
	VerdictApproved Verdict = "approved"
	VerdictRejected Verdict = "rejected"
)

// Review is a verdict on one exact head commit of a task.
type Review struct {
	TaskID      TaskID
	Attempt     int // the implementation attempt that was read
	Head        string
	Verdict     Verdict
	Issues      []string
	Suggestions []string
	CreatedAt   time.Time
}

// EvidenceType says what an observation's evidence refers to.
type EvidenceType string

// The types of evidence.
const (
	EvidenceFile     EvidenceType = "file"
	EvidenceSkill    EvidenceType = "skill"
	EvidenceHistory  EvidenceType = "history"
	EvidenceDecision EvidenceType = "decision"
)

// Evidence is what an observation rests on.
type Evidence struct {
	Type EvidenceType
	Ref  string // a path, a skill, a history record
}

// Observation is something that an agent noticed while it worked.
type Observation struct {
	ID        string // unique within the project, once it is journaled
	Content   string
	Evidence  []Evidence
	Source    Step
	IntentID  IntentID
	Processed bool
	CreatedAt time.Time
}

// Overlap is another task whose change does not merge with this one as they are
// now.
type Overlap struct {
	TaskID TaskID
	Files  []string // in conflict
}

// FileWrite is a whole file that a task writes without calling an agent.
type FileWrite struct {
	Path    string // below the repository's root
	Content string
}

// Usage is what agent calls consumed.
type Usage struct {
	InputTokens      int64
	OutputTokens     int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	CostUSD          float64
	Turns            int64
	Calls            int64
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		CostUSD:          u.CostUSD + v.CostUSD,
		Turns:            u.Turns + v.Turns,
		Calls:            u.Calls + v.Calls,
	}
}

// Outcome is how a run of an intent ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeFailed    Outcome = "failed"
	OutcomeEscalated Outcome = "escalated" // a conflict that only a person can resolve
)

// StepRecord is one decided attempt of a step, for the history.
type StepRecord struct {
	Step     Step
	TaskID   TaskID
	Attempt  int
	Outcome  string // "ok", "rejected", "conflict", or a FailureReason
	Duration time.Duration
	Session  string
	Agent    string
	Model    string
	Usage    Usage
	At       time.Time
}

// Adjustment is a change that the runner made to the flow, and the rule behind it.
type Adjustment struct {
	Rule   string // the rule's name, as flow's rules.go lists them
	TaskID TaskID
	Detail string
	At     time.Time
}

// History is the record of one finished run of an intent.
type History struct {
	IntentID      IntentID
	Run           int
	IntentType    string
	IntentRisk    Risk
	Source        Source
	Title         string
	Flow          []Step // the steps that ran, in order, each once
	Adjustments   []Adjustment
	StepResults   []StepRecord
	Outcome       Outcome
	FailureReason string
	Observations  []Observation
	StartedAt     time.Time
	CreatedAt     time.Time // when it ended
}
