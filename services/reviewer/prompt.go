package reviewer

import (
	"context"
	_ "embed" // the prompt
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/repository"
)

//go:embed prompts/review.md
var reviewText string

var reviewPrompt = prompt.New("review.md", reviewText)

// maxDiff bounds the diff in a prompt, in bytes. What is larger the reviewer reads
// in the checkout, file by file.
const maxDiff = 200 << 10

// change is what a reviewer is shown. What its author says about it is not in it.
type change struct {
	*forge.Command
	Diff     string
	Files    string
	Earlier  []forge.Review
	Verified string
}

func prompts(ctx context.Context, j *repository.Job, base, head git.OID) (system, text string, err error) {
	c := change{Command: j.Command, Earlier: j.Command.Reviews, Verified: verified(j.Command.Verify)}
	diff, truncated, err := j.Store.Diff(ctx, base, head, maxDiff)
	if err != nil {
		return "", "", err
	}
	if !truncated && utf8.Valid(diff) {
		c.Diff = string(diff)
	} else {
		changes, err := j.Store.Changes(ctx, base, head)
		if err != nil {
			return "", "", err
		}
		c.Files = files(changes)
	}
	return render(&c)
}

func render(c *change) (system, text string, err error) {
	if system, err = reviewPrompt.Render("system", nil); err != nil {
		return "", "", err
	}
	text, err = reviewPrompt.Render("prompt", c)
	return system, text, err
}

func files(changes []git.FileChange) string {
	const most = 1000
	var b strings.Builder
	for i, c := range changes {
		if i == most {
			fmt.Fprintf(&b, "... and %d more files\n", len(changes)-most)
			break
		}
		if c.Binary {
			fmt.Fprintf(&b, "%q (binary)\n", c.Path)
			continue
		}
		fmt.Fprintf(&b, "%q +%d -%d\n", c.Path, c.Added, c.Deleted)
	}
	return b.String()
}

func verified(v *forge.VerifyReport) string {
	switch {
	case v == nil:
		return "The project has no commands that verify a change."
	case v.Passed:
		return "All commands by which the project verifies a change passed."
	}
	return fmt.Sprintf("The command %q, by which the project verifies a change, failed.", v.Command)
}
