package forge

import (
	"fmt"
	"strconv"
)

// Step is one kind of work in a flow; it is also a token of the subjects that
// its commands and results travel on.
type Step string

// The steps. A default flow runs analyze, implement, rebase, review, merge and
// reflect; the rest take the place of analyze where they are named.
const (
	StepAnalyze   Step = "analyze"
	StepArchitect Step = "architect" // after an analysis that was not sufficient
	StepAudit     Step = "audit"     // intents of type audit: looks and reports, changes nothing
	StepObserve   Step = "observe"   // intents of type skill_extraction: finds patterns
	StepAbstract  Step = "abstract"  // the same: makes skills of them
	StepImplement Step = "implement"
	StepRebase    Step = "rebase" // includes the verify commands
	StepReview    Step = "review"
	StepMerge     Step = "merge"
	StepReflect   Step = "reflect"
	StepIntake    Step = "intake"    // intents with criteria: makes a task and criteria of a goal, or asks
	StepExecute   Step = "execute"   // takes the place of implement: one iteration towards a goal
	StepSummarize Step = "summarize" // what an iteration came to, for the next ones
	StepJudge     Step = "judge"     // takes the place of review: whether every criterion is met
)

// stepSpec says what holds of a step everywhere.
type stepSpec struct {
	step    Step
	service string // of the workers that carry it out
	ofTask  bool   // its attempts are about a task, not about the whole intent
	agent   bool   // it calls an agent, which costs money
}

// specs has a row for each step, in the order of the flow.
var specs = []stepSpec{
	{StepAnalyze, "analyzer", false, true},
	{StepArchitect, "analyzer", false, true},
	{StepAudit, "analyzer", false, true},
	{StepObserve, "analyzer", false, true},
	{StepAbstract, "reflector", false, true},
	{StepImplement, "implementer", true, true},
	{StepRebase, "implementer", true, false},
	{StepReview, "reviewer", true, true},
	{StepMerge, "implementer", true, false},
	{StepReflect, "reflector", false, true},
	{StepIntake, "analyzer", false, true},
	{StepExecute, "implementer", true, true},
	{StepSummarize, "reflector", true, true},
	{StepJudge, "reviewer", true, true},
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
	for i := range specs {
		if specs[i].step == s {
			return specs[i]
		}
	}
	return stepSpec{step: s}
}

// Service returns the name of the service that carries the step out, such as reviewer;
// empty for a word that is no step.
func (s Step) Service() string { return s.spec().service }

// OfTask reports whether attempts of the step are about a task, and not about the whole
// intent.
func (s Step) OfTask() bool { return s.spec().ofTask }

// CallsAgent reports whether the step calls an agent, unless a recipe takes its place.
func (s Step) CallsAgent() bool { return s.spec().agent }

// ParseStep returns s as a step.
func ParseStep(s string) (Step, error) {
	for _, st := range Steps() {
		if string(st) == s {
			return st, nil
		}
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
	Task TaskID // empty for a step of the whole intent
	// Step is the kind of work; attempts of different steps are counted apart.
	Step   Step
	Number int // counted from 1, per task and step
	Claim  int // counted from 1, per attempt
}

func (a Attempt) String() string {
	task := string(a.Task)
	if task == "" {
		task = "-"
	}
	return task + "/" + string(a.Step) + "/" + strconv.Itoa(a.Number) + "." + strconv.Itoa(a.Claim)
}
