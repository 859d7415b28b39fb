package others

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/document"
)

const (
	// Asked says why an approval of a requester would not count.
	Asked = "You asked for it, so another person has to approve it."
	// Free says to a requester that their approval counts.
	Free = "You are one of its requesters, and your approval counts all the same: policy.approvals.not_requester is off here. "
	// Joins says who becomes a requester, where it is not known whether the policy then bars them.
	Joins = "You become one of its requesters, and may then not be the one who approves it."
)

// Joining says who becomes a requester, and whether the policy then bars them, where the state
// of the intent tells it: it names those who are barred, and each requester is, or none.
func Joining(d *document.Detail) string {
	switch a := d.Approvals; {
	case a != nil && len(a.Barred) > 0:
		return "You become one of its requesters, and may then not approve it: another person has to."
	case a != nil && len(d.Requesters) > 0:
		return "You become one of its requesters, and may approve it all the same: policy.approvals.not_requester is off here."
	}
	return Joins
}

// Requested reports whether the words of a person are in an intent.
func Requested(name string, d *document.Detail) bool {
	return slices.ContainsFunc(d.Requesters, func(r document.Identity) bool { return strings.EqualFold(name, r.Name) })
}

// Objection says why an approval of a person would not count; empty if it
// would, as far as the state of the intent says.
func Objection(name string, d *document.Detail) string {
	a := d.Approvals
	if a == nil {
		return ""
	}
	same := func(other string) bool { return strings.EqualFold(name, other) } // as the rules compare people
	switch {
	case slices.ContainsFunc(a.Given, same):
		return fmt.Sprintf("You have approved it. %d of %d approvals are there.", len(a.Given), a.Needed)
	case slices.ContainsFunc(a.Barred, same):
		return Asked
	}
	return ""
}
