package reviewer

import (
	_ "embed" // the prompt
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed prompts/judge.md
var judgeText string

var judgePrompt = prompt.New("judge.md", judgeText)

// judgeData is the data of a judge's prompt: what was asked for, what the verify
// commands said, the change, and, as claims, the report of the agent that made it.
type judgeData struct {
	fitted

	Request      forge.Intent
	Instructions string
	Task         string
	// Judging is a person's instruction for judges.
	Judging   string
	Criteria  []criterion
	Iteration int
	Changed   bool
	Verify    *forge.VerifyReport
	// Checks are the verify commands.
	Checks string
	Rules  []string
	// Files are as they are now.
	Files []file
	Claim *forge.Execution
	// Summary is of this iteration.
	Summary *forge.ExecutionSummary
}

// criterion is one of a goal's criteria, or of a task's requirements. Numbers count from 1.
type criterion struct {
	Number int
	Text   string
}

// newJudgeData returns the data that a command contains.
func newJudgeData(cmd *forge.Command, checks []string) *judgeData {
	in := cmd.Iteration()
	l := in.Goal
	g := &judgeData{
		Request: cmd.Intent, Instructions: cmd.Instructions, Task: cmd.Task.Plan, Iteration: l.Iteration,
		Changed: cmd.Task.Head != "" && cmd.Task.Head != cmd.Task.Base,
		Verify:  in.Verify, Checks: strings.Join(checks, "\n"), Claim: l.Execution,
	}
	g.Request.Clarifications = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications),
		func(q forge.Clarification) bool { return q.Answer == nil })
	if o := cmd.Intent.Goal; o != nil {
		g.Judging = o.JudgePrompt
	}
	for i, text := range l.Criteria {
		g.Criteria = append(g.Criteria, criterion{i + 1, text})
	}
	if n := len(l.Summaries); n > 0 && l.Summaries[n-1].Iteration == l.Iteration {
		g.Summary = &l.Summaries[n-1]
	}
	return g
}

// render returns the system prompt and the prompt.
func (g *judgeData) render() (system, text string, err error) {
	if system, err = judgePrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	text, err = judgePrompt.Render("prompt", g)
	return system, text, err
}
