package analyzer

import (
	_ "embed" // the prompt
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed prompts/analyze.md
var analyzeText string

var analyzePrompt = prompt.New("analyze.md", analyzeText)

// prompts returns who the agent is, and what it has to do: a new analysis, or, in a
// session that goes on, what has been answered since.
func prompts(cmd *forge.Command) (system, text string, err error) {
	if system, err = analyzePrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	part := "prompt"
	if cmd.Session != "" {
		part = "resume"
	}
	text, err = analyzePrompt.Render(part, struct {
		*forge.Command
		Answers string
		Others  []forge.ActiveIntent
	}{cmd, answers(cmd.Intent.Clarifications), others(cmd)})
	return system, text, err
}

func answers(list []forge.Clarification) string {
	var b strings.Builder
	for _, c := range list {
		if c.Answer != nil {
			b.WriteString("Q: " + indent(c.Question) + "\nA: " + indent(*c.Answer) + "\n")
		}
	}
	return b.String()
}

// indent keeps the lines of a text together.
func indent(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n   ")
}

// others is what goes on beside this intent.
func others(cmd *forge.Command) []forge.ActiveIntent {
	var list []forge.ActiveIntent
	for _, a := range cmd.Active {
		if a.ID != cmd.To.Intent {
			list = append(list, a)
		}
	}
	return list
}
