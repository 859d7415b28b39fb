// Package pull says what follows from a look at a pull request.
//
// A forge tells what happens to a pull request by hooks, which get lost, come twice, late and in another order. So nothing here
// follows from what happened: each look holds everything that the forge shows at one moment, and the newest one alone says
// where the pull request stands. A look that is lost is made up for by the next one, one that is doubled sees the same, and one
// that is late is older than what is known:
//
//	                   +--> foreign    it is not the pull request of this change: nothing follows
//	                   +--> elsewhere  it is to be merged, or was, into another branch: waits for a person
//	                   +--> merged     whoever did that; what was merged is proved from the repository
//	                   +--> edited     another one moved the head branch: it is never overwritten
//	a look ----------->+--> closed     waits for a person; one who opens it again is seen by the next look
//	                   +--> unwanted   a person who may asks for changes
//	                   +--> failing    a check that has to pass failed
//	                   +--> pending    a check that has to pass has not ended
//	                   +--> blocked    the forge would not merge it yet, as where an approval is missing
//	                   +--> ready      it may be merged, as long as its head is the one that was looked at
//
// The first that holds counts, from the top. What is merged is a fact also where the head is another one: the rest of the rules
// find out what was merged. What a person asks for comes before what a check says, since it leads to another change anyway.
//
// Who can lie: the text of a pull request, in which the gateway finds again whose it is, can be edited by whoever may write to the
// repository. So a look counts only if its number, or where that is not known yet its branches, are those of the change, whatever the
// gateway takes it for. A review
// counts only if the forge lets its author decide and the operator knows who that is: everyone may press "approve" or "request changes"
// on a public repository. A check counts by its name, and one that is named and not there has not ended. Where none are named, one at
// least has to be there: a forge shows none until its CI has begun.
package pull

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Standing is where a pull request stands.
type Standing string

// The standings, in the order in which they count.
const (
	// Foreign is another pull request than the one of the change.
	Foreign Standing = "foreign"
	// Elsewhere has another base branch than the one of the change: a person, or the forge, moved it there.
	Elsewhere Standing = "elsewhere"
	// Merged is on the base branch.
	Merged Standing = "merged"
	// Edited has another head than the one that was pushed.
	Edited Standing = "edited"
	// Closed is not merged, and not open.
	Closed Standing = "closed"
	// Unwanted is one of which a person who may asks for changes.
	Unwanted Standing = "unwanted"
	// Failing has a check that failed.
	Failing Standing = "failing"
	// Pending has a check that has not ended.
	Pending Standing = "pending"
	// Blocked is held up by the forge.
	Blocked Standing = "blocked"
	// Ready may be merged.
	Ready Standing = "ready"
)

// Ours names the branch that was pushed for a change, and the pull request that was made of it.
type Ours struct {
	// Branch and Base are the names of the head branch and of the one to merge into.
	Branch, Base string
	// Head is the commit that was pushed last.
	Head string
	// Number is that of the pull request; 0 until it is known.
	Number int
}

// foreign reports whether a look saw another pull request. Only the number is for ever: the head branch may be deleted after a merge,
// and people may move a pull request to another base branch.
func (o *Ours) foreign(seen *forge.PullRequest) bool {
	if o.Number != 0 {
		return seen.Number != o.Number
	}
	return seen.Branch != o.Branch || seen.Base != o.Base
}

// Standing returns where a pull request stands, as it was seen.
func (o *Ours) Standing(p *forge.PullPolicy, seen *forge.PullRequest) Standing {
	failing, pending := checks(p, seen)
	switch {
	case o.foreign(seen):
		return Foreign
	case seen.Base != o.Base:
		return Elsewhere
	case seen.State == forge.PullMerged:
		return Merged
	case seen.Head != o.Head || seen.Branch != o.Branch && seen.Branch != "":
		return Edited
	case seen.State == forge.PullClosed:
		return Closed
	case len(Wishes(seen)) > 0:
		return Unwanted
	case len(failing) > 0:
		return Failing
	case pending:
		return Pending
	case seen.Blocked != "":
		return Blocked
	}
	return Ready
}

// IsNews reports whether a look says more than the one before it: it is not older, and saw something else. Where clocks of two
// gateways differ, a look may be taken for an older one; the next look of the same gateway is newer.
func IsNews(known, seen *forge.PullRequest) bool {
	return known == nil || !seen.Seen.Before(known.Seen) && !same(known, seen)
}

// same reports whether two looks saw the same. Lists are compared in their order, which a gateway keeps.
func same(a, b *forge.PullRequest) bool {
	return a.Number == b.Number && a.URL == b.URL && a.Branch == b.Branch && a.Base == b.Base && a.Head == b.Head && a.State == b.State &&
		a.MergeCommit == b.MergeCommit && a.By == b.By && a.Blocked == b.Blocked && a.Behind == b.Behind &&
		slices.Equal(a.Checks, b.Checks) && slices.Equal(a.Reviews, b.Reviews)
}

// Wishes returns the reviews by which people who may ask for changes, of whatever commit: only they themselves take that back.
func Wishes(seen *forge.PullRequest) (list []forge.PullReview) {
	for _, r := range seen.Reviews {
		if r.May && r.Person != "" && r.Verdict == forge.PullChangesRequested {
			list = append(list, r)
		}
	}
	return list
}

// Failed returns the checks that failed and have to pass.
func Failed(p *forge.PullPolicy, seen *forge.PullRequest) []forge.PullCheck {
	failing, _ := checks(p, seen)
	return failing
}

// checks returns those that failed of the checks that have to pass, and whether one of the others has not ended. Without names in
// the policy these are all that the forge shows, and one at least.
func checks(p *forge.PullPolicy, seen *forge.PullRequest) (failing []forge.PullCheck, pending bool) {
	shown := map[string]bool{}
	for _, c := range seen.Checks {
		if len(p.Checks) > 0 && !slices.Contains(p.Checks, c.Name) {
			continue
		}
		shown[c.Name] = true
		switch c.State {
		case forge.PullCheckFailed:
			failing = append(failing, c)
		case forge.PullCheckPassed:
		case forge.PullCheckPending:
			pending = true
		default: // a state of a newer version has not ended, as far as this one knows
			pending = true
		}
	}
	missing := slices.ContainsFunc(p.Checks, func(name string) bool { return !shown[name] })
	return failing, pending || missing || len(p.Checks) == 0 && len(shown) == 0
}
