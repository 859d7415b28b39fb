package reviewer

import (
	_ "embed" // the prompt
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/config"
)

//go:embed prompts/review.md
var reviewText string

var reviewPrompt = prompt.New("review.md", reviewText)

// reviewData is the data of a reviewer's prompt: what was asked, what the verify
// commands said, and the code. What the author says about it is left out.
type reviewData struct {
	inquiry
	wanted

	Request     forge.Intent
	Title, Plan string // of the task
	// Requirements are those that the review answers.
	Requirements []criterion
	Verify       *forge.VerifyReport
	// Unchanged says that there is no change: the base is reviewed.
	Unchanged bool
	// Unverified says that the verify commands run after the review.
	Unverified bool
	// Checks are the verify commands.
	Checks  string
	Earlier []forge.Review
	// Since are files that differ from what the last review read.
	Since []string
	// Compared says that Since is known.
	Compared bool

	// Rules are files of the change that instruct agents.
	Rules []string
	Diff  string
	Parts []part
	Index string
	// LongList is the file with the whole index, if it is long.
	LongList string
	Binary   []string // files
	// Unshown are files that there was no room for.
	Unshown []string
}

// wanted has the words of people about this run, besides the request.
type wanted struct {
	// Instructions were given with a retry.
	Instructions string
	// Wish is a person's, about an earlier state of the change; nil if there is none.
	Wish *forge.Wish
}

// newReviewData returns the data that a command contains.
func newReviewData(cmd *forge.Command, checks []string) *reviewData {
	in := cmd.Review()
	c := &reviewData{
		Request: cmd.Intent, wanted: wanted{cmd.Instructions, cmd.Wish}, Title: cmd.Task.Title, Plan: cmd.Task.Plan,
		Verify: in.Verify, Unchanged: in.Unchanged, Unverified: in.Unverified, Checks: strings.Join(checks, "\n"), Earlier: in.Reviews,
	}
	for i, text := range cmd.Task.Required() {
		c.Requirements = append(c.Requirements, criterion{i + 1, text})
	}
	c.Request.Clarifications = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications),
		func(q forge.Clarification) bool { return q.Answer == nil })
	return c
}

// Last returns the head that the last review read; empty if there is none.
func (c *reviewData) Last() string {
	if len(c.Earlier) == 0 {
		return ""
	}
	return c.Earlier[len(c.Earlier)-1].Head
}

// render returns the system prompt and the prompt.
func render(c *reviewData) (system, text string, err error) {
	if system, err = reviewPrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	text, err = reviewPrompt.Render("prompt", c)
	return system, text, err
}

// rules returns the paths of files that instruct agents.
func rules(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !config.Instructs(p) })
}
