package pull

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// ShortName names a pull request, for people.
func ShortName(p *forge.PullRequest) string {
	if p.Number == 0 {
		return "the branch " + p.Branch
	}
	return fmt.Sprintf("pull request %d", p.Number)
}

// WhyHeld says why a pull request into a base branch waits for a person.
func WhyHeld(o forge.MergeOutcome, p *forge.PullRequest, base string) string {
	switch {
	case o == forge.MergeEdited:
		return fmt.Sprintf("%s was changed by another one, and is not overwritten", branch(p))
	case p.State == forge.PullMerged && p.Base == base:
		return fmt.Sprintf("the forge says that %s is merged, and %s does not have it as far as that can be read", ShortName(p), base)
	case p.State == forge.PullOpen && p.Base == base && p.Queue != nil:
		return fmt.Sprintf("%s was taken out of the merge queue: %s", ShortName(p), p.Queue.Reason)
	case p.State != forge.PullClosed:
		return fmt.Sprintf("%s is to be merged into %s now", ShortName(p), p.Base)
	case p.By == "":
		return ShortName(p) + " was closed"
	}
	return ShortName(p) + " was closed by " + p.By
}

// branch names the branch of a pull request.
func branch(p *forge.PullRequest) string {
	if p.Number == 0 {
		return ShortName(p)
	}
	return fmt.Sprintf("the branch %s of %s", p.Branch, ShortName(p))
}

// ChecksFeedback returns the feedback on a change on which checks of the forge
// failed. Its first line is all that lists show.
func ChecksFeedback(p *forge.PullRequest) string {
	var names []string
	var b strings.Builder
	for _, c := range p.Checks {
		names = append(names, fmt.Sprintf("%q", c.Name))
		fmt.Fprintf(&b, "\n\n%s failed:\n%s", c.Name, c.Output)
	}
	return "checks of the forge failed: " + strings.Join(names, ", ") + b.String()
}

// WishesFeedback returns the feedback on a change that people ask to be changed: their
// words, of which commit they are.
func WishesFeedback(p *forge.PullRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks for changes", strings.Join(Wishers(p), ", "))
	for _, r := range p.Reviews {
		fmt.Fprintf(&b, "\n\n%s about commit %s:\n%s", r.Person, r.Commit, r.Text)
	}
	return b.String()
}

// Wishers returns who asks for changes.
func Wishers(p *forge.PullRequest) (list []string) {
	for _, r := range p.Reviews {
		if !slices.Contains(list, r.Person) {
			list = append(list, r.Person)
		}
	}
	return list
}
