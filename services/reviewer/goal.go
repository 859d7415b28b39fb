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

// goal is what a judge is shown: what was asked for, what the project's commands said, the
// change, and, as claims, what the one who made it says.
type judgeData struct {
	fitted

	Request      forge.Intent
	Instructions string
	Task         string
	Judging      string // what a person says about judging
	Criteria     []criterion
	Iteration    int
	Changed      bool
	Verify       *forge.VerifyReport
	Checks       string // the commands
	Rules        []string
	Files        []file // as they are now
	Claim        *forge.Execution
	Summary      *forge.ExecutionSummary // of this iteration
}

// criterion is one of a goal's. Numbers count from 1.
type criterion struct {
	Number int
	Text   string
}

// newGoal returns what of a command a judge is shown.
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

// render returns who the agent is, and what it has to judge.
func (g *judgeData) render() (system, text string, err error) {
	if system, err = judgePrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	text, err = judgePrompt.Render("prompt", g)
	return system, text, err
}
