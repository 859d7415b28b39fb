package forge

import (
	"cmp"
	"time"
)

// Input is a step's own data, besides the intent and the task, as one of the
// types that Inputs lists. The interface is sealed, as Message is.
//
//sumtype:decl
type Input interface{ isInput() }

// Inputs lists a value of every type of input, with zero fields.
func Inputs() []Input {
	return []Input{
		&AnalyzeInput{}, &ObserveInput{}, &AbstractInput{}, &ImplementInput{}, &RebaseInput{}, &ReviewInput{},
		&IterationInput{}, &MergeInput{}, &ReflectInput{}, &ProbeInput{}, &PullInput{},
	}
}

func (*AnalyzeInput) isInput()   {}
func (*ObserveInput) isInput()   {}
func (*AbstractInput) isInput()  {}
func (*ImplementInput) isInput() {}
func (*RebaseInput) isInput()    {}
func (*ReviewInput) isInput()    {}
func (*IterationInput) isInput() {}
func (*MergeInput) isInput()     {}
func (*ReflectInput) isInput()   {}
func (*ProbeInput) isInput()     {}
func (*PullInput) isInput()      {}

// ProbeInput is the input of probe.
type ProbeInput struct {
	Patience time.Duration // how long to wait for the origin
}

// AnalyzeInput is the input of analyze, architect and intake.
type AnalyzeInput struct {
	// PolicyOnly asks for the project's policy and nothing else: no agent is called.
	PolicyOnly bool
	// Past are earlier runs of the project, the most relevant first.
	Past []PastRun
	// Insufficient says why the analysis before was not sufficient. Only architect has it.
	Insufficient string
	// Knowledge has to do with the intent, the most relevant first.
	Knowledge []Knowledge
}

// ObserveInput is the input of audit and observe. An audit is given none of it:
// it looks at the repository alone.
type ObserveInput struct {
	// Past are earlier runs of the project, the most relevant first.
	Past []PastRun
	// Observations are the project's that no reflection has read yet, oldest first.
	Observations []Observation
}

// AbstractInput is the input of abstract.
type AbstractInput struct {
	Patterns []Pattern // the findings of observe
}

// ImplementInput is the input of implement and execute.
type ImplementInput struct {
	// Continue says to go on in the working tree that the attempt before left,
	// uncommitted files included.
	Continue bool
	// Fresh says to start over from the tip of the base branch.
	Fresh bool
	// Feedback says why the attempt before was not accepted. Empty if it is the first.
	Feedback string
	// Reviews are those of the task so far, oldest first.
	Reviews []Review
	// Overlaps are the tasks under way that this one does not merge with.
	Overlaps []Overlap
	// Goal describes the goal, for execute. Nil for implement.
	Goal *GoalContext
	// Answered says that the attempt before was blocked, and that a person has
	// answered its question.
	Answered bool
	// Knowledge has to do with the intent, the most relevant first. That of a goal is in Goal.
	Knowledge []Knowledge
	// Analyzed is the commit of the base branch that the task's analysis read;
	// empty if that is not known.
	Analyzed string
}

// RebaseInput is the input of rebase. The rest is in the intent and the task.
type RebaseInput struct {
	Title         string     // the title of the merged commit: the intent's, or the task's if the intent has several
	Approver      string     // the person who approved the plan; empty if that was not needed
	Asked         []string   // checks that a reviewer asked for: then these run on the task's head, and nothing is rebased
	Tried         []CheckRun // trials of the change as it is, from an earlier rebase: what is known of it stays so
	VerifyInMerge bool       // the verify commands may be left to the merge: see Rebase.Unverified
	Settle        bool       // a change that failed once and then passes is run until it passes often enough, or fails again
	Adopted       *Adoption  // the commit of another one that is the change, or that it began with; nil where there is none
}

// ReviewInput is the input of review.
type ReviewInput struct {
	Verify     *VerifyReport // the report on the commit to review. Nil where none are configured
	Reviews    []Review      // those of the task so far, oldest first
	Unchanged  bool          // there is no change: the question is whether the base commit meets the task already
	Unverified bool          // see Rebase
	// Second is the reviewer who has to approve as well what First approved;
	// nil in the first review.
	Second *Reviewer
	// First approved this very commit. Whoever that was does not make the second review, too.
	First Reviewer
	// Asked are the runs that the reviewer asked for in this session so far.
	Asked []CheckRun
	// MayAsk is for how many more checks of the project it may ask.
	MayAsk int
}

// IterationInput is the input of summarize and judge.
type IterationInput struct {
	Goal   GoalContext   // the goal and the iteration's execution
	Verify *VerifyReport // the report on the iteration's commit. Nil where none are configured or nothing was changed
}

// MergeInput is the input of merge.
type MergeInput struct {
	Change *QueueMerge  // the request of the intent's state machine: the commit to merge
	Trial  bool         // whether nothing is to be merged: Change is only to be verified on top of Ahead
	Ahead  []QueueMerge // of a trial: what is to be merged before, in order
	Tried  *Rebase      // what trials of Change found, a pass or two failures; it counts where both trees are the same as on the tip
	In     Executor     // the one that the commands of Tried ran in
	Landed *Landing     // a merge by the forge that is only to be proved; nil otherwise
	Batch  int          // of a trial: how many of the last of Ahead are verified together with Change, by one run
	Settle bool         // see RebaseInput
	Over   string       // the commit of another one that the head branch may be at, and that Change takes the place of there; empty: none
}

// ReflectInput is the input of reflect.
type ReflectInput struct {
	History      *History      // the run to reflect on
	Histories    []History     // further runs that ended since the reflection before
	Observations []Observation // those of the project that no reflection has read yet, oldest first
	Proposed     []Proposal    // the proposals of earlier reflections and what became of them, oldest first
}

// HasInput reports whether the input is of the type that the attempt's step
// takes. Workers are given no other commands.
func (c *Command) HasInput() bool {
	switch in := c.Input.(type) {
	case *AnalyzeInput:
		return c.Attempt.Step == StepAnalyze || c.Attempt.Step == StepArchitect || c.Attempt.Step == StepIntake
	case *ObserveInput:
		return c.Attempt.Step == StepAudit || c.Attempt.Step == StepObserve
	case *AbstractInput:
		return c.Attempt.Step == StepAbstract
	case *ImplementInput:
		return c.Attempt.Step == StepImplement || c.Attempt.Step == StepExecute && in.Goal != nil
	case *RebaseInput:
		return c.Attempt.Step == StepRebase
	case *ReviewInput:
		return c.Attempt.Step == StepReview
	case *IterationInput:
		return c.Attempt.Step == StepSummarize || c.Attempt.Step == StepJudge
	case *MergeInput:
		return c.Attempt.Step == StepMerge && in.Change != nil
	case *ReflectInput:
		return c.Attempt.Step == StepReflect
	case *ProbeInput:
		return c.Attempt.Step == StepProbe
	case *PullInput:
		return c.Attempt.Step.Service() == "gateway"
	case nil:
	}
	return false
}

// Analyze returns the input of analyze, architect and intake. As with the
// methods below, it is zero if the command has another one.
func (c *Command) Analyze() AnalyzeInput { return input[AnalyzeInput](c) }

// Observe returns the input of audit and observe.
func (c *Command) Observe() ObserveInput { return input[ObserveInput](c) }

// Abstract returns the input of abstract.
func (c *Command) Abstract() AbstractInput { return input[AbstractInput](c) }

// Implement returns the input of implement and execute.
func (c *Command) Implement() ImplementInput { return input[ImplementInput](c) }

// Rebase returns the input of rebase.
func (c *Command) Rebase() RebaseInput { return input[RebaseInput](c) }

// Review returns the input of review.
func (c *Command) Review() ReviewInput { return input[ReviewInput](c) }

// Iteration returns the input of summarize and judge.
func (c *Command) Iteration() IterationInput { return input[IterationInput](c) }

// Merge returns the input of merge.
func (c *Command) Merge() MergeInput { return input[MergeInput](c) }

// Reflect returns the input of reflect.
func (c *Command) Reflect() ReflectInput { return input[ReflectInput](c) }

// Probe returns the input of probe.
func (c *Command) Probe() ProbeInput { return input[ProbeInput](c) }

// Pull returns the input of open_pull and merge_pull.
func (c *Command) Pull() PullInput { return input[PullInput](c) }

// Goal returns the goal that a step of an iteration works on, or nil if the
// step is none of them.
func (c *Command) Goal() *GoalContext {
	switch in := c.Input.(type) {
	case *ImplementInput:
		return in.Goal
	case *IterationInput:
		return &in.Goal
	default:
		return nil
	}
}

// input returns the command's input as a value of one type; zero if it is of another.
func input[T any](c *Command) T {
	return *cmp.Or(As[*T](c.Input), new(T))
}
