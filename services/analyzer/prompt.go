package analyzer

import (
	"embed"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/config"
)

//go:embed prompts
var files embed.FS

// templates has the prompt of each step.
var templates = map[forge.Step]*prompt.Template{
	forge.StepAnalyze:   load("analyze.md", "plan.md", "history.md"),
	forge.StepArchitect: load("architect.md", "plan.md", "history.md"),
	forge.StepAudit:     load("audit.md", "history.md"),
	forge.StepObserve:   load("observe.md", "history.md"),
	forge.StepIntake:    load("intake.md", "history.md"),
}

// load panics if a file is wrong, because the files are part of the program.
func load(names ...string) *prompt.Template {
	var text strings.Builder
	for _, name := range names {
		part, err := files.ReadFile("prompts/" + name)
		if err != nil {
			panic(err)
		}
		text.Write(part)
	}
	return prompt.New(names[0], text.String())
}

// Bounds of what an analysis is told of other intents.
const (
	maxOthers = 100
	maxRoom   = 64 << 10 // bytes of the plans and files of all of them
)

// question is what an answer is made from.
type promptData struct {
	*forge.Command
	history
	Insufficient string // why the analysis before was not sufficient

	Parts   bool   // the request may be taken apart
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

// prompts returns who the agent is, and what it has to do: something new, or, in a
// conversation that goes on, what has been answered since.
func prompts(cmd *forge.Command, c *config.Project, resumes bool) (system, text string, err error) {
	q := promptData{
		Command: cmd, history: newHistory(cmd), Insufficient: cmd.Analyze().Insufficient,
		Parts: mayTakeApart(cmd, c), Checks: strings.Join(c.Verify, "\n"),
	}
	q.Answers = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications), func(c forge.Clarification) bool { return c.Answer == nil })
	q.Others, q.More = others(cmd)
	t := templates[cmd.Attempt.Step]
	if system, err = t.Render("system", &q); err != nil {
		return "", "", err
	}
	part := "prompt"
	if resumes {
		part = "resume"
	}
	text, err = t.Render(part, &q)
	return system, text, err
}

// mayTakeApart reports whether the parts of the request could be intents.
func mayTakeApart(cmd *forge.Command, c *config.Project) bool {
	return cmd.Intent.Depth < c.Policy.MaxDepth
}

// others is what goes on beside this intent, and how much more there is.
func others(cmd *forge.Command) (list []other, more int) {
	room := maxRoom
	for _, a := range cmd.Analyze().Active {
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
