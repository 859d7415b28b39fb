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

// Steps lists every step that a worker can be given, in the order of the flow.
func Steps() []Step {
	return []Step{
		StepAnalyze, StepArchitect, StepAudit, StepObserve, StepAbstract,
		StepImplement, StepRebase, StepReview, StepMerge, StepReflect,
		StepIntake, StepExecute, StepSummarize, StepJudge,
	}
}

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
