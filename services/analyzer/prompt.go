package analyzer

import (
	_ "embed" // the prompt
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed prompts/analyze.md
var analyzeText string

var analyzePrompt = prompt.New("analyze.md", analyzeText)

// Bounds of what an analysis is told of other intents.
const (
	maxOthers = 100
	maxRoom   = 64 << 10 // bytes of the plans and files of all of them
)

// question is what an analysis is made from.
type question struct {
	*forge.Command
	Checks  string // the project's verify commands
	Answers []forge.Clarification
	Others  []other
	More    int // others that are not shown
}

// other is another active intent. Cut says that there was no room for its plan and files.
type other struct {
	forge.ActiveIntent
	Cut bool
}

// prompts returns who the agent is, and what it has to do: a new analysis, or, in a
// conversation that goes on, what has been answered since.
func prompts(cmd *forge.Command, checks []string, resumes bool) (system, text string, err error) {
	if system, err = analyzePrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	q := question{Command: cmd, Checks: strings.Join(checks, "\n")}
	q.Answers = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications), func(c forge.Clarification) bool { return c.Answer == nil })
	q.Others, q.More = others(cmd)
	part := "prompt"
	if resumes {
		part = "resume"
	}
	text, err = analyzePrompt.Render(part, &q)
	return system, text, err
}

// others is what goes on beside this intent, and how much more there is.
func others(cmd *forge.Command) (list []other, more int) {
	room := maxRoom
	for _, a := range cmd.Active {
		if a.ID == cmd.To.Intent {
			continue
		}
		if len(list) == maxOthers {
			more++
			continue
		}
		room -= len(a.Plan) + len(strings.Join(a.RelevantFiles, "\n- "))
		list = append(list, other{a, room < 0})
	}
	return list, more
}
