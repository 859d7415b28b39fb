package forge

import (
	"strings"
	"time"
)

// Command tells a worker to do one attempt of one step. The state machine of the
// intent issues it; merges and reflections are issued by the project's.
type Command struct {
	// To is the intent that the command is for, also where the project's state
	// machine issued it.
	To Key
	// Attempt is the attempt to make. The result repeats it, and is only decided on
	// while that attempt is open.
	Attempt Attempt
	// Replica is the one worker that may take the command, because it has the
	// task's checkout and session. Empty if any worker of the step may.
	Replica ReplicaID
	// Intent is the intent as it was when the command was issued. Zero for
	// integrate.
	Intent Intent
	// Task is the task as it was when the command was issued. Zero for integrate,
	// reflect, and the steps that are about the intent as a whole.
	Task Task
	// Session is the id of the agent's session, chosen before any process starts, so
	// that a session outlives the process. Empty where no agent is called.
	Session string
	// Resume says that an earlier attempt began the session. A worker that finds the
	// session's file resumes it in any case.
	Resume bool
	// LimitedAgents are the agents that have reached a limit of their provider.
	// The worker calls another one if the project's configuration lists one.
	LimitedAgents []string
	// BudgetUSD is what the call may cost, in US dollars. 0 if nothing was set aside
	// for it; the worker then goes by the project's configuration.
	BudgetUSD float64
	// Instructions are what a person said when they had the intent retried. Empty if
	// nothing.
	Instructions string
	// Input is what the step works on besides the intent and the task. HasInput
	// reports whether it is of the type that the step takes.
	Input Input
}

// ID names the command; the same decision always makes the same id.
func (c *Command) ID() string {
	return strings.Join([]string{string(c.To.Project), string(c.To.Intent), c.Attempt.String()}, "/")
}

// Result is what a worker reports of one attempt: facts, from which the rules
// decide what follows.
type Result struct {
	// To is the intent that the command was for.
	To Key
	// Attempt is the attempt that the command asked for. A result whose attempt is
	// not open any more changes nothing but the costs.
	Attempt Attempt
	// Replica is the worker that made the attempt.
	Replica ReplicaID
	// StartedAt is when the worker began, in UTC.
	StartedAt time.Time
	// Duration is how long the attempt took. Zero in the report that it started.
	Duration time.Duration
	// Agent is the back end that was called, such as claude; empty if none was.
	Agent string
	// Model is the model that the back end used; empty if none was called.
	Model string
	// Session is the agent's session that the attempt was in. It can be resumed.
	Session string
	// Usage is what all agent calls of the attempt consumed, those that failed
	// included.
	Usage Usage
	// Observations are what the agent noticed, at most 50.
	Observations []Observation
	// Policy is the project's own, as the attempt read it. Audit, observe and
	// intake set it; an analysis carries its own. Nil otherwise.
	Policy *Policy
	// Output is what the attempt came to: the payload of its step, *Started, or
	// *Failure. Nil counts as a failure.
	Output Output
}

// Output is what an attempt came to, as one of the types that Outputs lists. The
// interface is sealed, as Message is.
//
//sumtype:decl
type Output interface{ isOutput() }

// Started says that the replica that the command was addressed to has begun.
// The result of the same attempt follows.
type Started struct{}

// Outputs lists a value of every type of output, with zero fields.
func Outputs() []Output {
	return []Output{
		&Started{}, &Failure{}, &Analysis{}, &Implementation{}, &Rebase{}, &Review{}, &Integration{}, &Reflection{},
		&Audit{}, &Observed{}, &Abstraction{}, &Intake{}, &Summarization{}, &Judgment{},
	}
}

func (*Started) isOutput()        {}
func (*Failure) isOutput()        {}
func (*Analysis) isOutput()       {}
func (*Implementation) isOutput() {}
func (*Rebase) isOutput()         {}
func (*Review) isOutput()         {}
func (*Integration) isOutput()    {}
func (*Reflection) isOutput()     {}
func (*Audit) isOutput()          {}
func (*Observed) isOutput()       {}
func (*Abstraction) isOutput()    {}
func (*Intake) isOutput()         {}
func (*Summarization) isOutput()  {}
func (*Judgment) isOutput()       {}

// Failure returns why the attempt failed, or nil if it did not.
func (r *Result) Failure() *Failure { return As[*Failure](r.Output) }

// IsStart reports whether the result only says that the attempt has begun.
func (r *Result) IsStart() bool { return As[*Started](r.Output) != nil }

// Machine returns the key of the machine that decides on the result:
// integrations and reflections belong to the lane, everything else to the intent.
func (r *Result) Machine() Key {
	if r.Attempt.Step == StepIntegrate || r.Attempt.Step == StepReflect {
		return r.To.Lane()
	}
	return r.To
}

// Answers reports whether the output is of the type that the attempt's step
// makes.
func (r *Result) Answers() bool {
	switch out := r.Output.(type) {
	case *Analysis:
		return r.Attempt.Step == StepAnalyze || r.Attempt.Step == StepArchitect
	case *Implementation:
		return r.Attempt.Step == StepImplement || r.Attempt.Step == StepExecute && out.Execution != nil
	case *Audit:
		return r.Attempt.Step == StepAudit
	case *Observed:
		return r.Attempt.Step == StepObserve
	case *Abstraction:
		return r.Attempt.Step == StepAbstract
	case *Intake:
		return r.Attempt.Step == StepIntake
	case *Rebase:
		return r.Attempt.Step == StepRebase
	case *Review:
		return r.Attempt.Step == StepReview
	case *Summarization:
		return r.Attempt.Step == StepSummarize
	case *Judgment:
		return r.Attempt.Step == StepJudge
	case *Integration:
		return r.Attempt.Step == StepIntegrate
	case *Reflection:
		return r.Attempt.Step == StepReflect
	case nil, *Started, *Failure:
	}
	return false
}

// Analysis is what analyze or architect found: tasks, or the parts that the intent
// is to be taken apart into, or questions, or that it takes a deeper look.
type Analysis struct {
	Tasks          []TaskPlan
	Children       []ChildPlan
	Insufficient   string          // analyze: why a deeper look is needed
	Clarifications []Clarification // asked when not empty
	Type           string
	Risk           Risk
	DependsOn      []IntentID
	NothingToDo    string // why there is nothing to do; then there are no tasks
	Policy         *Policy
	Base           string // the commit of the base branch that was read
}

// TaskPlan is a task before it has an id. Names are unique within an analysis.
type TaskPlan struct {
	Name          string
	Title         string
	Plan          string
	RelevantFiles []string
	Steps         []string
	Context       string
	Complexity    Complexity
	DependsOn     []string // names
	Item          string
	Write         *FileWrite
}

// ChildPlan is a part of an intent that becomes an intent of its own.
type ChildPlan struct {
	Name      string // unique within an analysis
	Title     string
	Body      string
	Type      string
	Risk      Risk
	DependsOn []string // names
}

// Implementation is what implement left.
type Implementation struct {
	Base      string
	Head      string
	Commits   int // new on top of Base
	Files     []string
	Leftover  string // commit that keeps what the agent did not commit; empty if nothing
	Summary   string
	Unchanged bool       // nothing had to be changed, and the recipe says that this is fine
	Execution *Execution // execute
	Overlaps  []Overlap  // tasks under way that it does not merge with
}

// Rebase is the change, put on the base branch's tip and verified there.
type Rebase struct {
	Base      string
	Head      string
	Tree      string
	PatchID   string
	Files     []string
	Conflicts []string // files; when not empty, nothing was rebased
	Verify    *VerifyReport
	Overlaps  []Overlap // tasks under way that it does not merge with
}

// VerifyReport is what the verify commands said; nil where none are configured.
type VerifyReport struct {
	Passed  bool
	Command string // the one that failed
	Output  string
}

// LandOutcome is how an integration ended.
type LandOutcome string

// The outcomes of an integration.
const (
	LandIntegrated   LandOutcome = "integrated"
	LandConflict     LandOutcome = "conflict"      // with what landed since
	LandVerifyFailed LandOutcome = "verify_failed" // on the moved base
	LandChanged      LandOutcome = "changed"       // the rebased patch is another one: review it again
	LandDirty        LandOutcome = "dirty"         // a person's uncommitted changes are in the way
)

// Integration is what became of a landing.
type Integration struct {
	Outcome   LandOutcome
	Commit    string // the commit on the base branch
	Parent    string
	Tree      string
	PatchID   string
	Files     []string // in conflict, or dirty
	Verify    *VerifyReport
	Candidate *Rebase // changed, verify_failed: the rebased change
}

// Reflection is what reflect proposes, and the ids of the observations that it
// read.
type Reflection struct {
	Proposals []Intent // an ID is only a suggestion how the intent's id begins
	Read      []string
}

// Policy is the part of a project's configuration that rules of the flow read.
type Policy struct {
	MaxReviewRetries int           // further implementations after a rejection or an empty attempt
	MaxAgentRetries  int           // further attempts of a step after an agent's error
	RetryBackoff     time.Duration // before the first such attempt; doubled for each further one
	ClaimTimeout     time.Duration // how long a replica may leave its own rework unclaimed
	AttemptTimeout   time.Duration // after which a replica that began counts as lost
	TrustedOrigins   []string      // systems whose intents may run unapproved at low risk
	Budget           Budget
	Fallbacks        int      // further agents to turn to when one is at a limit
	ProtectedPaths   []string // a change below these waits for a person, also after an approved review
	Approvers        []string // who may approve; empty: everybody who may publish an approval
	MaxDepth         int      // of intents within intents; 0: none is taken apart
	Reflection       ReflectionPolicy
}

// ReflectionPolicy bounds what reflection adds to the work by itself.
type ReflectionPolicy struct {
	Off            bool
	MaxGeneration  int // how many reflections may lie between an intent and what a person wanted
	ProposalsADay  int // of the project, UTC
	ProposalsATime int
}

// Budget bounds what agents may cost, in US dollars; 0: no bound.
type Budget struct {
	IntentUSD  float64 // of one intent, in all its runs
	ProjectUSD float64 // of all intents of the project
	DayUSD     float64 // of all intents of the project on one day, UTC
	CallUSD    float64 // what is set aside for one call; 0: DefaultCallUSD
}

// DefaultCallUSD is what is set aside for one call while a budget is in force.
const DefaultCallUSD = 5

// Shared reports whether intents draw on one pool.
func (b Budget) Shared() bool { return b.ProjectUSD > 0 || b.DayUSD > 0 }

// DefaultPolicy is in force until an analysis has read the project's own.
func DefaultPolicy() Policy {
	return Policy{
		MaxReviewRetries: 2,
		MaxAgentRetries:  2,
		RetryBackoff:     time.Second,
		ClaimTimeout:     30 * time.Second,
		AttemptTimeout:   time.Hour,
		MaxDepth:         3,
		Reflection:       ReflectionPolicy{MaxGeneration: 2, ProposalsADay: 20, ProposalsATime: 5},
	}
}
