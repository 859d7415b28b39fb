package forge_test

import (
	"fmt"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// TestHasInput checks that every step takes inputs of just one type.
func TestHasInput(t *testing.T) {
	takes := map[forge.Step]forge.Input{
		forge.StepAnalyze: &forge.AnalyzeInput{}, forge.StepArchitect: &forge.AnalyzeInput{}, forge.StepIntake: &forge.AnalyzeInput{},
		forge.StepAudit: &forge.ObserveInput{}, forge.StepObserve: &forge.ObserveInput{}, forge.StepAbstract: &forge.AbstractInput{},
		forge.StepImplement: &forge.ImplementInput{}, forge.StepExecute: &forge.ImplementInput{Goal: &forge.GoalContext{}},
		forge.StepRebase: &forge.RebaseInput{}, forge.StepReview: &forge.ReviewInput{},
		forge.StepSummarize: &forge.IterationInput{}, forge.StepJudge: &forge.IterationInput{},
		forge.StepMerge: &forge.MergeInput{Change: &forge.QueueMerge{}}, forge.StepReflect: &forge.ReflectInput{},
	}
	for step, want := range takes {
		c := forge.Command{Attempt: forge.Attempt{Step: step}}
		if c.HasInput() {
			t.Errorf("%s takes no input at all", step)
		}
		for _, in := range forge.Inputs() {
			if fmt.Sprintf("%T", in) == fmt.Sprintf("%T", want) {
				in = want
			}
			if c.Input = in; c.HasInput() != (in == want) {
				t.Errorf("%s: %T: %v", step, in, c.HasInput())
			}
		}
	}
	for step, in := range map[forge.Step]forge.Input{forge.StepExecute: &forge.ImplementInput{}, forge.StepMerge: &forge.MergeInput{}} {
		if c := (forge.Command{Attempt: forge.Attempt{Step: step}, Input: in}); c.HasInput() {
			t.Errorf("%s: the input is empty", step)
		}
	}
}

// TestInputOfAnotherStep checks that what a command does not have reads as zero.
func TestInputOfAnotherStep(t *testing.T) {
	c := forge.Command{Input: &forge.ImplementInput{Feedback: "no", Goal: &forge.GoalContext{Iteration: 2}}}
	if c.Implement().Feedback != "no" || c.Goal().Iteration != 2 || c.Analyze().PolicyOnly || c.Review().Reviews != nil || c.Merge().Change != nil {
		t.Errorf("%+v", c)
	}
	c.Input = &forge.IterationInput{Goal: forge.GoalContext{Iteration: 3}}
	if c.Implement().Feedback != "" || c.Goal().Iteration != 3 {
		t.Errorf("%+v", c)
	}
	if c.Input = nil; c.Goal() != nil || c.Iteration().Goal.Iteration != 0 {
		t.Errorf("%+v", c)
	}
}
