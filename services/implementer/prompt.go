package implementer

import (
	_ "embed" // the prompt
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
)

//go:embed prompts/implement.md
var implementText string

var implementPrompt = prompt.New("implement.md", implementText)

// prompts returns who the agent is, and what it has to do: a task, or, in a session
// that goes on, what was wrong. interrupted keeps work that was cut off.
func prompts(cmd *forge.Command, resumes bool, interrupted git.OID) (system, text string, err error) {
	if system, err = implementPrompt.Render("system", cmd); err != nil {
		return "", "", err
	}
	part := "prompt"
	if resumes {
		part = "resume"
	}
	text, err = implementPrompt.Render(part, struct {
		*forge.Command
		Steps       string
		Interrupted git.OID
		Answers     []forge.Clarification
	}{cmd, strings.Join(cmd.Task.Steps, "\n"), interrupted, answered(cmd.Intent.Clarifications)})
	return system, text, err
}

func answered(list []forge.Clarification) []forge.Clarification {
	var out []forge.Clarification
	for _, c := range list {
		if c.Answer != nil {
			out = append(out, c)
		}
	}
	return out
}
