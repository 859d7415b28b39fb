package pull

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Facts returns the contents of the pull request of a change: the intent, and
// how the change was verified and reviewed. last are the reviews that its
// verdict was made of, and all those of the task.
func Facts(in *forge.Intent, c *forge.Rebase, last, all []forge.Review) *forge.PullFacts {
	f := &forge.PullFacts{Request: in.Title, Files: c.Files}
	if in.Body != "" {
		f.Request += "\n\n" + in.Body
	}
	for _, who := range in.Requesters {
		f.Requesters = append(f.Requesters, who.Name)
	}
	if v := c.Verify; v != nil {
		for _, run := range v.Runs {
			f.Commands = append(f.Commands, run.Command)
		}
	}
	if len(last) > 0 { // a second reviewer answers the same requirements
		for i := range last[0].Claims {
			f.Requirements = append(f.Requirements, requirement(&last[0].Claims[i]))
		}
	}
	for _, rv := range all {
		if rv.Verdict == forge.VerdictRejected {
			f.Rejected = append(f.Rejected, fmt.Sprintf("attempt %d: %s", rv.Attempt, strings.Join(rv.Issues, "; ")))
		}
	}
	return f
}

// requirement returns a claim of a review as people read it.
func requirement(c *forge.Claim) forge.PullRequirement {
	r := forge.PullRequirement{Text: c.Text, Met: c.Counts()}
	for _, e := range c.Evidence {
		r.Evidence = append(r.Evidence, e.String())
	}
	return r
}
