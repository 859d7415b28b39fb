package reviewer

import (
	_ "embed" // the prompt
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed prompts/review.md
var reviewText string

var reviewPrompt = prompt.New("review.md", reviewText)

// change is what a reviewer is shown: what was asked, what the project's commands
// said, and the code. What its author says about it is not in it.
type reviewData struct {
	Request      forge.Intent
	Instructions string
	Title, Plan  string // of the task
	Verify       *forge.VerifyReport
	Checks       string // the commands
	Earlier      []forge.Review
	Since        []string // files that differ from what the last review read
	Compared     bool     // Since is known

	Rules    []string // files of the change that tell agents how to work
	Diff     string
	Parts    []part
	Index    string
	LongList string   // the file that has the whole index, if it is long
	Binary   []string // files
	Unshown  []string // files that there was no room for
}

// newChange returns what of a command a reviewer is shown.
func newReviewData(cmd *forge.Command, checks []string) *reviewData {
	in := cmd.Review()
	c := &reviewData{
		Request: cmd.Intent, Instructions: cmd.Instructions, Title: cmd.Task.Title, Plan: cmd.Task.Plan,
		Verify: in.Verify, Checks: strings.Join(checks, "\n"), Earlier: in.Reviews,
	}
	c.Request.Clarifications = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications),
		func(q forge.Clarification) bool { return q.Answer == nil })
	return c
}

// Last is the head that the last review read; empty if there is none.
func (c *reviewData) Last() string {
	if len(c.Earlier) == 0 {
		return ""
	}
	return c.Earlier[len(c.Earlier)-1].Head
}

// render returns who the agent is, and what it has to judge.
func render(c *reviewData) (system, text string, err error) {
	if system, err = reviewPrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	text, err = reviewPrompt.Render("prompt", c)
	return system, text, err
}

// ruleNames are files and directories in which a repository tells agents how to work.
var ruleNames = []string{
	"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "copilot-instructions.md", ".cursorrules", ".windsurfrules",
	".claude", ".codex", ".gemini", ".opencode", ".cursor",
}

// rules returns the paths of such files.
func rules(paths []string) []string {
	var list []string
	for _, p := range paths {
		for name := range strings.SplitSeq(p, "/") {
			if slices.ContainsFunc(ruleNames, func(r string) bool { return strings.EqualFold(r, name) }) {
				list = append(list, p)
				break
			}
		}
	}
	return list
}
