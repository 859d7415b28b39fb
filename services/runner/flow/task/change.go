package task

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
)

// Change is the strategy of an ordinary task: implement, and have the change reviewed
// in a session that has not seen it before. Rejections, empty attempts and failed
// verify commands spend one allowance, Policy.MaxReviewRetries.
type Change struct{}

// Table returns Changes.
func (Change) Table() Table { return Changes }

// Step returns the step of a stage.
func (Change) Step(s Stage) forge.Step {
	switch s {
	case Implementing:
		return forge.StepImplement
	case Rebasing, Checking:
		return forge.StepRebase
	case Reviewing:
		return forge.StepReview
	default:
		return ""
	}
}

// Counter returns the attempts of a step.
func (Change) Counter(t *Task, step forge.Step) *retry.Counter {
	switch step {
	case forge.StepRebase:
		return &t.Rebase
	case forge.StepReview, forge.StepJudge:
		return &t.Review
	default:
		return &t.Implement
	}
}

// Session returns the session about a step.
func (Change) Session(t *Task, step forge.Step) *session.Session {
	if step == forge.StepReview || step == forge.StepJudge {
		return &t.ReviewSession
	}
	return &t.Session
}

// Enter does nothing.
func (Change) Enter(*Task, Stage) {}

// Begin spends the allowance, unless the change is made for the first time or after a
// conflict. Rejected reviews, attempts that changed nothing and failed verifies count alike, also
// those in a merge; the allowance is of the whole run, and a person's retry begins a new one.
func (Change) Begin(x *Turn, t *Task, row Row, in Input) string {
	if !row.Spends {
		if row.On == Ready && t.Complexity == forge.ComplexityHigh {
			Best{t}.begin(x, whenComplex)
		}
		return ""
	}
	t.Feedback = in.Feedback
	// Writing the same again mends nothing: an agent goes on from what was written.
	t.Write = nil
	// A third time would be the same.
	if recipe := x.Intent.Recipe; in.Again && recipe != "" && x.Rules.Has(rules.FailedAgain) {
		t.Rejections++
		return fmt.Sprintf("recipe %q made the same change again: %s", recipe, cause.Gist(in.Feedback))
	}
	if t.Rejections >= x.Policy.MaxReviewRetries {
		t.Rejections++
		return fmt.Sprintf("gave up after %s: %s", rule.Count(t.Rejections, "attempt"), cause.Gist(in.Feedback))
	}
	x.Adjust(row.Rule, t.ID, cause.Gist(in.Feedback))
	Escalation{t}.Setback(x)
	Best{t}.begin(x, whenRejected)
	return ""
}

// GaveUp reports false: the task fails.
func (Change) GaveUp(*Turn, *Task, forge.Step, string) bool { return false }
