package sim

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// maxIterations bounds the iterations of a goal.
const maxIterations = 4

// goalStep carries out the steps that only goals have.
func (w worker) goalStep(c *forge.Command) *forge.Result {
	switch c.Attempt.Step {
	case forge.StepIntake:
		in := &forge.Intake{Task: "t", Criteria: w.texts(&c.Intent), Risk: forge.RiskLow}
		switch {
		case len(c.Intent.Clarifications) < 2 && w.chance(8):
			in.Clarifications = []forge.Clarification{{Question: fmt.Sprintf("what, %d?", len(c.Intent.Clarifications))}}
		case w.chance(6):
			in.Risk = forge.RiskMed
		case w.chance(20):
			in.Criteria = nil
		}
		return &forge.Result{Output: in, Policy: w.money.policy()}
	case forge.StepExecute:
		im := w.implementation(c)
		if im.Commits == 0 {
			im.Head = im.Base
		}
		im.Execution = &forge.Execution{Status: forge.ExecutionSuccess, Approach: "a"}
		for _, k := range c.Goal().Knowledge {
			if w.rng.IntN(2) == 0 {
				im.Execution.Applied = append(im.Execution.Applied, k.ID)
			}
		}
		return &forge.Result{Output: im}
	case forge.StepSummarize:
		s := &forge.Summarization{Summary: forge.ExecutionSummary{Approach: "a", Result: forge.ExecutionSuccess}}
		if w.rng.IntN(3) == 0 {
			s.Knowledge = []forge.Knowledge{{Type: forge.KnowledgeLesson, Content: fmt.Sprintf("lesson %d", w.rng.IntN(5))}}
		}
		return &forge.Result{Output: s}
	case forge.StepJudge:
		return &forge.Result{Output: w.judgment(c)}
	default:
		panic("no worker does step " + c.Attempt.Step)
	}
}

// judgment judges every criterion, well or badly.
func (w worker) judgment(c *forge.Command) *forge.Judgment {
	w.workers.asked[reviewed{c.Task.ID, c.Task.Head}] = c.Goal().Criteria
	return &forge.Judgment{Head: c.Task.Head, Complete: !w.chance(20), Claims: facts.Claims(w.chance, c.Goal().Criteria)}
}

// reached reports whether a judgment lets a change merge, by what its judge was
// asked for: see checkMeasured for the rest.
func reached(j *forge.Judgment, asked []string) bool {
	return j != nil && j.Complete && facts.Shown(asked, j.Claims)
}
