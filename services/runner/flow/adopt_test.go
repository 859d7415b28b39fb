package flow_test

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// adoption fills in what a worker says of a commit that is to be adopted:
// author=ada, or refused=why with found=commit.
func adoption(out *forge.Rebase, arg func(string) string) {
	if who := arg("author"); who != "" {
		out.Author = fmt.Sprintf("%s <%s@example.com>", who, who)
	}
	if why := arg("refused"); why != "" {
		*out = forge.Rebase{Base: "main", Refusal: spaced(why), Found: arg("found")}
	}
}

// describeAdoption says what a command is to do with a commit of another one;
// empty of other commands.
func describeAdoption(c *forge.Command) (text string) {
	a := c.Rebase().Adopted
	if q := c.Merge().Change; q != nil && q.Facts != nil {
		a = q.Facts.Adopted
	}
	switch {
	case a == nil:
	case a.Author == "":
		text = fmt.Sprintf(" adopting %s of %s", a.Commit, a.Branch)
	default:
		text = fmt.Sprintf(" by %s", a.Author)
	}
	if over := c.Merge().Over; over != "" {
		text += " over " + over
	}
	return text
}

// editedAt returns what a push found on a branch; nil if it does not say.
func editedAt(head, branch string) *forge.PullRequest {
	if head == "" {
		return nil
	}
	return &forge.PullRequest{Branch: branch, Base: "main", Head: head}
}
