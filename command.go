package forge

import (
	"strings"
	"time"
)

// Command tells a worker to do one attempt of one step. The state machine of the
// intent issues it; merges, reflections and probes are issued by the project's.
type Command struct {
	// To is the intent that the command is for, also where the project's state machine issued it.
	To Key
	// Attempt is the attempt to make. The result repeats it, and is only
	// decided on while that attempt is open.
	Attempt Attempt
	// Replica is the one worker that may take the command, because it has the
	// task's checkout and session. Empty if any worker of the step may.
	Replica ReplicaID
	// Intent is the intent as it was when the command was issued. Zero for merge.
	Intent Intent
	// Task is the task as it was when the command was issued. Zero for merge,
	// reflect, and the steps that are about the intent as a whole.
	Task Task
	// Session is the id of the agent's session, chosen before any process starts, so
	// that a session outlives the process. Empty where no agent is called.
	Session string
	// Resume says that an earlier attempt began the session. A worker that
	// finds the session's file resumes it in any case.
	Resume bool
	// LimitedAgents are the agents that have reached a limit of their provider.
	// The worker calls another one if the project's configuration lists one.
	LimitedAgents []string
	// BudgetUSD bounds the cost of the call, in US dollars. 0 if nothing was
	// reserved for it; the worker then goes by the project's configuration.
	BudgetUSD float64
	// Instructions were given by a person with a retry of the intent. Empty if nothing.
	Instructions string
	Wish         *Wish // what a person wants to be different about the plan, or the task's change, that was made before; nil if none does
	// Stronger takes the place of the configured model and effort, because
	// attempts before were not good enough; nil if nothing does.
	Stronger     *Stronger
	ClosedAgents []string      // whose accounts refuse calls: the worker calls none of them
	Accounts     int           // the ObstaclesChanged.Number that is known by now: with a higher one than before, an account that refused calls is tried again
	Patience     time.Duration // for how long replicas leave it to one another before they report FailReplica; 0: they never do, as by older rules
	// Input holds the step's own data, besides the intent and the task.
	// HasInput reports whether it is of the type that the step takes.
	Input Input
}

// ID names the command; the same decision always makes the same id.
func (c *Command) ID() string {
	return strings.Join([]string{string(c.To.Project), string(c.To.Intent), c.Attempt.String()}, "/")
}

// Result is a worker's report of one attempt: facts, from which the rules decide what follows.
type Result struct {
	// To is the intent that the command was for.
	To Key
	// Attempt is the attempt that the command asked for. A result whose attempt
	// is not open any more changes nothing but the costs.
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
	// Usage sums up the consumption of all agent calls of the attempt, those that failed included.
	Usage Usage
	// Observations were made by the agent in passing, at most 50.
	Observations []Observation
	// Policy is the project's own, as the attempt read it. Audit, observe and
	// intake set it; an analysis carries its own. Nil otherwise.
	Policy *Policy
	// Executor is the weakest that the attempt's agent, recipe and commands
	// had, as the worker says; empty if none of these ran.
	Executor Executor
	// Output holds the outcome: the payload of the step, *Started, or *Failure.
	// Nil counts as a failure.
	Output Output
}

// Executor is where a worker runs what it does not trust: agents, recipes and commands.
type Executor string

// The executors, the strongest first.
const (
	ExecutorPods       Executor = "pods"       // a pod for each command
	ExecutorNamespaces Executor = "namespaces" // a sandbox on the worker's machine
	ExecutorNone       Executor = "none"       // without a sandbox, beside the worker
)

// Output is the outcome of an attempt, as one of the types that Outputs lists. The
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
		&Started{}, &Failure{}, &Analysis{}, &Implementation{}, &Rebase{}, &Review{}, &MergeResult{}, &Reflection{},
		&Audit{}, &Observed{}, &Abstraction{}, &Intake{}, &Summarization{}, &Judgment{}, &Probed{}, &PullRequest{},
	}
}

func (*Started) isOutput()        {}
func (*Failure) isOutput()        {}
func (*Analysis) isOutput()       {}
func (*Implementation) isOutput() {}
func (*Rebase) isOutput()         {}
func (*Review) isOutput()         {}
func (*MergeResult) isOutput()    {}
func (*Reflection) isOutput()     {}
func (*Audit) isOutput()          {}
func (*Observed) isOutput()       {}
func (*Abstraction) isOutput()    {}
func (*Intake) isOutput()         {}
func (*Summarization) isOutput()  {}
func (*Judgment) isOutput()       {}
func (*Probed) isOutput()         {}
func (*PullRequest) isOutput()    {}

// Probed says that the origin answers.
type Probed struct{}

// Failure returns why the attempt failed, or nil if it did not.
func (r *Result) Failure() *Failure { return As[*Failure](r.Output) }

// IsStart reports whether the result only says that the attempt has begun.
func (r *Result) IsStart() bool { return As[*Started](r.Output) != nil }

// Machine returns the key of the machine that decides on the result: merges, pull
// requests, reflections and probes belong to the project, everything else to the intent.
func (r *Result) Machine() Key {
	if r.Attempt.Step.OfProject() {
		return r.To.ProjectKey()
	}
	return r.To
}

// Answers reports whether the output is of the type that the attempt's step makes.
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
	case *MergeResult:
		return r.Attempt.Step == StepMerge
	case *Reflection:
		return r.Attempt.Step == StepReflect
	case *Probed:
		return r.Attempt.Step == StepProbe
	case *PullRequest:
		return r.Attempt.Step == StepOpenPull || r.Attempt.Step == StepMergePull
	case nil, *Started, *Failure:
	}
	return false
}

// Analysis is the answer of analyze and architect: tasks, or child intents, or
// questions, or that there is nothing to do, or that it takes a deeper look.
type Analysis struct {
	// Tasks are the plan, in an order in which they can be done.
	Tasks []TaskPlan
	// Children are the intents to split this one into; then there are no tasks.
	Children []ChildPlan
	// Insufficient says why a deeper look is needed; empty otherwise, and always for architect.
	Insufficient string
	// Clarifications are questions to a person. If there are any, nothing else
	// of the analysis counts.
	Clarifications []Clarification
	// Type is the judged type of the intent.
	Type string
	// Risk is the judged risk.
	Risk Risk
	// DependsOn are other intents of the project that have to be done before.
	DependsOn []IntentID
	// NothingToDo says why there is nothing to do; then there are no tasks.
	NothingToDo string
	// Policy is the project's own, as the analysis read it.
	Policy *Policy
	// Base is the commit of the base branch that was read.
	Base string
}

// TaskPlan is a task before it has an id.
type TaskPlan struct {
	Name          string     // unique within an analysis; empty stands for the task's number
	Title         string     // one line
	Plan          string     // what to do, for the agent that does it
	RelevantFiles []string   // paths that the task is about
	Steps         []string   // the implementation steps, in order
	Context       string     // facts that the implementation needs
	Complexity    Complexity // picks the model
	DependsOn     []string   // names of tasks that have to be merged before
	Item          string     // the line of a recipe's each that the task stands for
	Write         *FileWrite // a file to write instead of calling an agent; nil otherwise
	Requirements  []string   // answered by a review of the task, one by one; empty stands for the title
}

// ChildPlan is a child intent before it has an id.
type ChildPlan struct {
	Name      string   // unique within an analysis; empty stands for the child's number
	Title     string   // one line
	Body      string   // the text of the intent
	Type      string   // the intent's type
	Risk      Risk     // the declared risk
	DependsOn []string // names of children that have to be done before
}

// Implementation is the output of implement and execute.
type Implementation struct {
	Base    string   // the commit that the attempt began on
	Head    string   // the branch's newest commit; Base if nothing was committed
	PatchID string   // identifies the change from Base to Head; empty if there is none
	Commits int      // on top of Base
	Files   []string // the paths that differ between Base and Head
	// Leftover is a commit that keeps uncommitted changes; empty if there were none.
	Leftover string
	// Summary is the agent's own report. It decides nothing.
	Summary string
	// Unchanged says that nothing had to be changed, and that the recipe allows it.
	Unchanged bool
	// Execution is set by execute only.
	Execution *Execution
	// Overlaps are tasks under way whose newest changes do not merge with Head.
	Overlaps []Overlap
	// Blocked is the question without whose answer the agent cannot go on; nil if it can.
	Blocked *Clarification
	// NothingToDo is the agent's claim, with evidence, that Base meets the task
	// already; empty if it makes none, or committed something.
	NothingToDo string
	// Denied lists the uses of tools that the agent's program did not allow,
	// such as "Write .claude/skills/x/SKILL.md".
	Denied []string
}

// Rebase is a change that was put on the tip of the base branch and verified there.
type Rebase struct {
	Base       string   // the tip of the base branch; in a trial, the changes ahead on top of it
	BaseTree   string   // the tree of Base; only in a trial
	Head       string   // the change as one commit on Base
	Tree       string   // the tree of Head: exactly this was verified, unless it is Unverified
	Unverified bool     // the verify commands are left to the merge
	MadeOn     string   // of one that is Unverified, the base that it was made on; empty if that is Base
	PatchID    string   // identifies the change, whatever it is based on
	Files      []string // the paths that the change touches
	Guarded    []string // says, a phrase each, what else of them only a person may approve
	Conflicts  []string // the paths in conflict; if there are any, nothing was rebased
	Landed     []string // paths that changed on the base branch since the change was made; empty unless the two fail only together
	// Verify is the report of the verify commands; nil if none are configured.
	Verify    *VerifyReport
	Together  string    // the tree of the last change of a batch, on which Verify ran instead of on Tree; empty if it ran on Tree
	Overlaps  []Overlap // tasks under way whose newest changes do not merge with Head
	Statement Envelope  // the worker's signed envelope that Tree passed; empty if it did not, or nothing is signed
	Author    string    // the author of an adopted commit, which is that of Head, as "Name <address>"; empty where none was adopted
	Refusal   string    // why the commit to adopt is none of this change, for people: then nothing was rebased
	Found     string    // of a commit to adopt that is refused: the one that its branch is at instead; empty if that is not the reason
}

// Adoption is a commit of another one, on the branch of a task's pull request, that a person made
// the change of the task. It is taken as it was seen: a branch that is elsewhere by then has the
// task wait again. As soon as it is on the tip it is a change as any other, but for its author.
type Adoption struct {
	Commit string   // as it was seen at the head of Branch
	Branch string   // the head branch
	Author string   // see Rebase.Author; empty until the commit is on the tip of the base branch
	Number int      // counts up with each adoption of the task: a commit that was replaced may be put back, and adopted again
	Barred []string // whose approval at the forge is not another person's: who adopted it, whom it names; none where requesters may approve
}

// Envelope is a signed statement in one line, as package proof seals it. It is
// told as it is or not at all.
type Envelope string

// MergeOutcome is how a merge ended.
type MergeOutcome string

// The outcomes of a merge.
const (
	MergeDone         MergeOutcome = "merged"            // the commit is on the base branch: a fact, whoever reports it
	MergeConflict     MergeOutcome = "conflict"          // the change conflicts with one that was merged since
	MergeVerifyFailed MergeOutcome = "verify_failed"     // a verify command failed on the tip, to which the base branch had moved
	MergePatchChanged MergeOutcome = "changed"           // on the moved tip the change is another patch, which has to be reviewed
	MergeTried        MergeOutcome = "tried"             // a trial has ended: with its finding in Candidate; nil if the changes ahead do not go together
	MergeRefused      MergeOutcome = "refused"           // a hook of the origin, or the protection of the branch, refused the push
	MergeOvertaken    MergeOutcome = "overtaken"         // the base branch moved while the change was verified: it says nothing about the change
	MergeProposed     MergeOutcome = "proposed"          // the change is on Branch, as Commit on Parent: its pull request can be merged
	MergeEdited       MergeOutcome = "edited"            // Branch has commits of another one, which are not overwritten
	MergeClosed       MergeOutcome = "closed"            // the pull request was closed, or is to be merged elsewhere
	MergeChecksFailed MergeOutcome = "checks_failed"     // checks of the forge failed: see Pull
	MergeUnwanted     MergeOutcome = "changes_requested" // a person who may asks for changes at the pull request: see Pull
	MergeDenied       MergeOutcome = "denied"            // the forge does not do what it was asked for until a person mends that: see Refusal
	MergeOverdue      MergeOutcome = "overdue"           // the pull request has waited for a day: see Refusal
	MergeDirty        MergeOutcome = "dirty"             // uncommitted changes of a person, or an unfinished git operation, are in the way
)

// MergeResult is the output of a merge that was tried.
type MergeResult struct {
	// Outcome says whether the commit is on the base branch, and otherwise why not.
	Outcome MergeOutcome
	// Commit is the commit on the base branch; empty unless it was merged.
	Commit string
	// Parent and Tree are those of Commit, and PatchID identifies the change.
	Parent, Tree, PatchID string
	// Files are the paths in conflict, or those of a person's uncommitted
	// changes that are in the way.
	Files  []string
	Verify *VerifyReport // on the moved base; nil if the base had not moved
	// Candidate is the change on the moved base, if it has to be reviewed or
	// implemented again, or its push was refused; otherwise nil.
	Candidate *Rebase
	Refusal   string // what the origin or the forge said when it refused, or what a pull request is waiting for, on one line
	// Branch is the head branch of a pull request, and BaseBranch the one to
	// merge it into, of a change that is proposed or edited.
	Branch, BaseBranch string
	Pull               *PullRequest // of a change that waits, failed or is unwanted at the forge: with the checks that failed, or the reviews that ask
	Unproven           string       // why the commit that the forge merged is another than was verified on its parent; empty if it is the same
	Batch              []Rebase     // of a trial of a batch: what becomes of those before its last change, in order, verified together with that
}

// Reflection is the answer of reflect.
type Reflection struct {
	// Proposals are intents that the reflection proposes. The ID of each is the
	// spelling of its title, from which the rules derive the intent's id.
	Proposals []Intent
	// Read are the ids of the observations that were read.
	Read []string
}
