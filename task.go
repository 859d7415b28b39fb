package forge

import "time"

// Task is one unit of implementation: one branch, one reviewed change, one
// commit on the base branch.
type Task struct {
	// Aims decide whether the task is done.
	Aims

	// ID is the intent's id and a number.
	ID TaskID
	// IntentID is the intent that the task belongs to.
	IntentID IntentID
	// Title is one line. It becomes the title of the merged commit, unless the
	// intent has just this task: then the intent's does.
	Title string
	// Plan says what to do, for the agent that does it.
	Plan string
	// RelevantFiles are paths that the plan names. The change may touch others.
	RelevantFiles []string
	// Steps are the implementation steps of the plan, in order.
	Steps []string
	// Context holds facts from the analysis that the implementation needs.
	Context string
	// Complexity picks the model.
	Complexity Complexity
	// DependsOn are tasks of the same intent that have to be merged before.
	DependsOn []TaskID
	// Status is how far the task is. Only the rules set it.
	Status TaskStatus
	// Name is the recipe's name of the task; empty without a recipe.
	Name string
	// Item is the line of the recipe's each that the task stands for; empty without one.
	Item string
	// Attempts counts the implementations that were begun.
	Attempts int
	// Base is the commit that Head was made on.
	Base string
	// Head is the last commit that the task produced.
	Head string
	// Commit is the task's commit on the base branch; empty until it is merged.
	Commit string
	// Failure says, for a person, why the task failed or waits, or is done without a commit.
	Failure string
	// Write is a file to write instead of calling an agent; nil otherwise.
	Write *FileWrite
}

// Aims list all that has to hold when a task is done.
type Aims struct {
	// Criteria are those of a goal's task; nil otherwise.
	Criteria []string
	// Checks are those of the criteria that a command decides, in their order.
	Checks []Check
	// Requirements are answered by a review, by their numbers, which count
	// from 1. See Task.Required.
	Requirements []string
}

// Required returns the requirements of the task: its own, or the title where the plan names
// none.
func (t *Task) Required() []string {
	if len(t.Requirements) == 0 {
		return []string{t.Title}
	}
	return t.Requirements
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
	TaskPending        TaskStatus = "pending"
	TaskImplementing   TaskStatus = "implementing"
	TaskDone           TaskStatus = "done"
	TaskFailed         TaskStatus = "failed"
	CancelledByAPerson            = "cancelled by a person" // begins Task.Failure of a task that a person cancelled, and of no other
)

// Verdict is the result of a review.
type Verdict string

// The verdicts.
const (
	VerdictApproved Verdict = "approved"
	VerdictRejected Verdict = "rejected"
)

// Review is a verdict on one exact commit of a task.
type Review struct {
	// TaskID is the task that was reviewed.
	TaskID TaskID
	// Attempt is the implementation that was read, from 1.
	Attempt int
	// Head is the commit that was read. A review of another commit counts for nothing.
	Head string
	// By is the agent that made it; zero where a recipe's check did.
	By Reviewer
	// Second says that it is that of the second reviewer, of what the first approved.
	Second bool
	// Asked are the checks that the reviewer asked for: the names in a result,
	// which then has no verdict; the runs in the state of a task.
	Asked []CheckRun
	// Verdict approves or rejects the commit. A result has the reviewer's word; the
	// state of a task has the verdict that the rules derive from claims and issues.
	Verdict Verdict
	// Claims answer the requirements; empty in the review of a recipe's check,
	// whose exit code decides.
	Claims []Claim
	// Issues have to be resolved. With an issue, the rules reject.
	Issues []string
	// Suggestions are possible improvements. They do not hold an approval back.
	Suggestions []string
	// CreatedAt is when the review was decided on, in UTC.
	CreatedAt time.Time
	// Statement is the worker's signed envelope of the verdict; empty if
	// nothing is signed, and once it is with the task.
	Statement Envelope
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

// Evidence supports an observation.
type Evidence struct {
	// Type says what Ref refers to.
	Type EvidenceType
	// Ref is a path, a skill's name, or the id of a history record.
	Ref string
}

// Observation is something that an agent noticed while it worked. Reflection
// reads it.
type Observation struct {
	// ID is unique within the project. It is set when the observation is journaled.
	ID string
	// Content is the observation itself, at most 2,000 bytes.
	Content string
	// Evidence supports it.
	Evidence []Evidence
	// Source is the step in which it was noticed.
	Source Step
	// IntentID is the intent that was worked on.
	IntentID IntentID
	// Processed says that a reflection has read it.
	Processed bool
	// CreatedAt is when it was journaled, in UTC.
	CreatedAt time.Time
}

// Overlap names a task whose newest change does not merge with another task's.
type Overlap struct {
	// TaskID is the other task.
	TaskID TaskID
	// Files are the paths in conflict.
	Files []string
}

// FileWrite is a whole file that a task writes without calling an agent.
type FileWrite struct {
	// Path is below the repository's root.
	Path string
	// Content is the whole file.
	Content string
}

// Usage is the consumption of agent calls.
type Usage struct {
	// InputTokens are tokens that were sent and not cached.
	InputTokens int64
	// OutputTokens are tokens that models wrote.
	OutputTokens int64
	// CacheReadTokens are tokens that were read from a model's cache.
	CacheReadTokens int64
	// CacheWriteTokens are tokens that were written to a model's cache.
	CacheWriteTokens int64
	// CostUSD is the price, in US dollars.
	CostUSD float64
	// Turns are the messages of models.
	Turns int64
	// Calls are the calls of agent programs.
	Calls int64
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
	// OutcomeSuccess: the run ended with its intent done.
	OutcomeSuccess Outcome = "success"
	// OutcomeFailed: the run ended with its intent blocked, in error, rejected or cancelled.
	OutcomeFailed Outcome = "failed"
	// OutcomeEscalated: the run failed by a conflict that only a person can resolve.
	OutcomeEscalated Outcome = "escalated"
)

// StepRecord is one decided attempt of a step.
type StepRecord struct {
	// Step is the step that was attempted.
	Step Step
	// TaskID is the task; empty for a step of the whole intent.
	TaskID TaskID
	// Attempt is the attempt's number, from 1.
	Attempt int
	// Outcome is "ok", "rejected", "conflict" and the like, or a FailureReason.
	Outcome string
	// Duration is how long the worker took.
	Duration time.Duration
	// Session is the agent's session; empty if no agent was called.
	Session string
	// Agent is the back end; empty if none was called.
	Agent string
	// Model is the model; empty if none was called.
	Model string
	// Executor is the result's; empty if nothing ran that needs one.
	Executor Executor
	// Usage is the attempt's consumption.
	Usage Usage
	// At is when the result was decided on, in UTC.
	At time.Time
}

// Adjustment is a change that the rules made to the flow.
type Adjustment struct {
	// Rule names the rule that made it.
	Rule string
	// TaskID is the task that it is about; empty for the whole intent.
	TaskID TaskID
	// Detail says what it was about, for a person.
	Detail string
	// At is when it was made, in UTC.
	At time.Time
}

// History is the record of one finished run of an intent.
type History struct {
	// IntentID is the intent.
	IntentID IntentID
	// Run is the run, from 1.
	Run int
	// IntentType is the intent's type when the run ended.
	IntentType string
	// IntentRisk is the intent's risk when the run ended.
	IntentRisk Risk
	// Source is where the intent came from.
	Source Source
	// Title is the intent's title.
	Title string
	// Flow are the steps that ran, in order, each once.
	Flow []Step
	// Adjustments are the changes of the flow, in order.
	Adjustments []Adjustment
	// StepResults are the attempts that were decided, in order.
	StepResults []StepRecord
	// Outcome is how the run ended.
	Outcome Outcome
	// FailureReason says why it failed; empty if it did not.
	FailureReason string
	// Observations are those of the run.
	Observations []Observation
	// StartedAt is when the run was admitted, in UTC.
	StartedAt time.Time
	// CreatedAt is when the run ended, in UTC.
	CreatedAt time.Time
}
