package analyzer

import (
	"embed"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/words"
	"github.com/pfl-forge/pfl-forge/verdict"
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

// load parses a prompt, and panics if a file is wrong, because the files are part of
// the program.
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

// Bounds of a prompt.
const (
	// maxOthers bounds the other intents in a prompt.
	maxOthers = 100
	// maxRoom bounds their plans and files together, in bytes.
	maxRoom = 64 << 10
)

// promptData is the data of the analyzer's prompts.
type promptData struct {
	*forge.Command
	history
	// Insufficient is why the analysis before was not sufficient.
	Insufficient string

	// Whole says that all that is planned is merged as one change.
	Whole bool
	// Parts says that the request may be divided into children.
	Parts bool
	// Checks are the project's verify commands.
	Checks string
	// Criteria are those of a goal that no command decides.
	Criteria []string
	// Decided are the others, a line each.
	Decided string
	Answers []forge.Clarification
	Others  []other
	// More counts the other intents that are not shown.
	More int
	// Knowledge has the findings of earlier runs, a line for each piece.
	Knowledge string
}

// other is another active intent. Cut says that there was no room for its plan and
// files.
type other struct {
	*forge.Summary
	Cut bool
}

// prompts returns the system prompt and the prompt: of a new session, or, in one that
// is resumed, what has been answered and has changed since. active are the intents under way.
func prompts(cmd *forge.Command, active []forge.Summary, c *config.Project, resumes bool) (system, text string, err error) {
	q := promptData{
		Command: cmd, history: newHistory(cmd), Insufficient: cmd.Analyze().Insufficient,
		Decided: decided(cmd.Intent.Checks),
		Parts:   mayTakeApart(cmd, c), Whole: c.Merge.Whole(), Checks: strings.Join(c.Verify, "\n"),
	}
	q.Criteria, _ = verdict.Texts(cmd.Intent.Criteria, cmd.Intent.Checks)
	q.Answers = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications), func(c forge.Clarification) bool { return c.Answer == nil })
	q.Others, q.More = others(cmd, active)
	q.Knowledge = agent.KnowledgeLines(cmd.Analyze().Knowledge)
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

// mayTakeApart reports whether the request may be divided into children.
func mayTakeApart(cmd *forge.Command, c *config.Project) bool {
	return cmd.Intent.Depth < c.Policy.MaxDepth
}

// others returns the other active intents that fit, those that have most words in common
// with the command's first, and how many more there are.
func others(cmd *forge.Command, active []forge.Summary) (list []other, more int) {
	about := words.Set(cmd.Intent.Title + "\n" + cmd.Intent.Body)
	// How near another intent is decides only about the order, and so about what is left out of
	// a very long list: whether one needs the other is up to the agent.
	near := map[forge.IntentID]int{}
	for i := range active {
		a := &active[i]
		near[a.Key.Intent] = words.Common(words.Sorted(a.Title+"\n"+a.Outline+"\n"+strings.Join(a.RelevantFiles, "\n")), about)
		if a.Key.Intent != cmd.To.Intent {
			list = append(list, other{a, false})
		}
	}
	slices.SortStableFunc(list, func(a, b other) int { return near[b.Key.Intent] - near[a.Key.Intent] })
	more = max(0, len(list)-maxOthers)
	list = list[:len(list)-more]
	room := maxRoom
	for i := range list {
		room -= len(list[i].Outline) + len(strings.Join(list[i].RelevantFiles, "\n- "))
		list[i].Cut = room < 0
	}
	return list, more
}

// decided returns the criteria that commands decide, a line each.
func decided(checks []forge.Check) string {
	var lines []string
	for i := range checks {
		lines = append(lines, checks[i].Text())
	}
	return strings.Join(lines, "\n")
}
