package forge

import (
	"fmt"
	"slices"
	"strconv"
)

// Step is one kind of work in a flow; it is also a token of the subjects that
// its commands and results travel on.
type Step string

// The steps. A default flow runs analyze, implement, rebase, review, merge and reflect.
// The others take the place of one of these, or come beside them, as each says.
const (
	// StepAnalyze plans the tasks of an intent, or asks.
	StepAnalyze Step = "analyze"
	// StepArchitect does the same, looking deeper, after an analysis that was not sufficient.
	StepArchitect Step = "architect"
	// StepAudit looks for problems and reports, for intents of TypeAudit. It changes nothing.
	StepAudit Step = "audit"
	// StepObserve finds patterns in the history, for intents of TypeSkillExtraction.
	StepObserve Step = "observe"
	// StepAbstract makes skills of those patterns.
	StepAbstract Step = "abstract"
	// StepImplement makes the change of one task, as commits on the task's branch.
	StepImplement Step = "implement"
	// StepRebase puts the change on the tip of the base branch, and runs the verify commands.
	StepRebase Step = "rebase"
	// StepReview judges the change as it would be merged.
	StepReview Step = "review"
	// StepMerge moves the base branch to the commit. The project issues it.
	StepMerge Step = "merge"
	// StepReflect reads finished runs and may propose intents. The project issues it.
	StepReflect Step = "reflect"
	// StepIntake makes a task and criteria of an intent with criteria, or asks.
	StepIntake Step = "intake"
	// StepExecute takes the place of implement for a goal: one iteration.
	StepExecute Step = "execute"
	// StepSummarize sums up an iteration for the next ones.
	StepSummarize Step = "summarize"
	// StepJudge takes the place of review for a goal: it says which criteria are met.
	StepJudge Step = "judge"
	// StepOpenPull makes the pull request of a change, or brings it up to date.
	// The project issues it.
	StepOpenPull Step = "open_pull"
	// StepMergePull has the forge merge a pull request. The project issues it.
	StepMergePull Step = "merge_pull"
	// StepProbe waits until an origin that was away answers. The project issues it.
	StepProbe Step = "probe"
)

// stepSpec says what holds of a step everywhere.
type stepSpec struct {
	step    Step
	service string // of the workers that carry it out
	ofTask  bool   // its attempts are about a task, not about the whole intent
	agent   bool   // it calls an agent, which costs money
	project bool   // the state machine of the project issues it and decides on its results
}

// specs has a row for each step, in the order of the flow.
var specs = []stepSpec{
	{StepAnalyze, "analyzer", false, true, false},
	{StepArchitect, "analyzer", false, true, false},
	{StepAudit, "analyzer", false, true, false},
	{StepObserve, "analyzer", false, true, false},
	{StepAbstract, "reflector", false, true, false},
	{StepImplement, "implementer", true, true, false},
	{StepRebase, "implementer", true, false, false},
	{StepReview, "reviewer", true, true, false},
	{StepMerge, "implementer", true, false, true},
	{StepReflect, "reflector", false, true, true},
	{StepIntake, "analyzer", false, true, false},
	{StepExecute, "implementer", true, true, false},
	{StepSummarize, "reflector", true, true, false},
	{StepJudge, "reviewer", true, true, false},
	{StepProbe, "implementer", false, false, true},
	{StepOpenPull, "gateway", true, false, true},
	{StepMergePull, "gateway", true, false, true},
}

// Steps lists every step that a worker can be given, in the order of the flow.
func Steps() []Step {
	list := make([]Step, len(specs))
	for i := range specs {
		list[i] = specs[i].step
	}
	return list
}

// spec returns the row of a step; a zero one for a word that is no step.
func (s Step) spec() stepSpec {
	if i := slices.IndexFunc(specs, func(r stepSpec) bool { return r.step == s }); i >= 0 {
		return specs[i]
	}
	return stepSpec{step: s}
}

// Service returns the name of the service that carries the step out, such as
// reviewer; empty for a word that is no step.
func (s Step) Service() string { return s.spec().service }

// OfTask reports whether attempts of the step are about a task, and not about the whole intent.
func (s Step) OfTask() bool { return s.spec().ofTask }

// CallsAgent reports whether the step calls an agent, unless a recipe takes its place.
func (s Step) CallsAgent() bool { return s.spec().agent }

// OfProject reports whether the state machine of the project issues the step,
// and decides on its results, instead of the intent's.
func (s Step) OfProject() bool { return s.spec().project }

// ParseStep returns s as a step.
func ParseStep(s string) (Step, error) {
	if slices.Contains(Steps(), Step(s)) {
		return Step(s), nil
	}
	return "", fmt.Errorf("unknown step %q", s)
}

// Key names a state machine.
type Key struct {
	// Project is the project.
	Project ProjectID
	// Intent is the intent; empty names the state machine of the project itself.
	Intent IntentID
}

// ProjectKey returns the key of the project's state machine.
func (k Key) ProjectKey() Key { return Key{Project: k.Project} }

// IsProject reports whether the key names the state machine of a project.
func (k Key) IsProject() bool { return k.Intent == "" }

func (k Key) String() string {
	if k.IsProject() {
		return string(k.Project)
	}
	return string(k.Project) + "/" + string(k.Intent)
}

// Attempt identifies one attempt of one step. Claim fences re-issues of the
// same attempt to other replicas: of two claims, only the newer one counts.
type Attempt struct {
	// Task is empty for a step of the whole intent.
	Task TaskID
	// Step is the kind of work; attempts of different steps are counted apart.
	Step Step
	// Number counts from 1, per task and step. A retry of the step has the next one.
	Number int
	// Claim counts from 1, per attempt: how often it was issued to a worker.
	Claim int
}

func (a Attempt) String() string {
	task := string(a.Task)
	if task == "" {
		task = "-"
	}
	return task + "/" + string(a.Step) + "/" + strconv.Itoa(a.Number) + "." + strconv.Itoa(a.Claim)
}
