// Package pull says what follows from a look at a pull request.
//
// A forge tells what happens to a pull request by hooks, which get lost, come
// twice, late and in another order. So nothing here follows from what happened:
// each look holds everything that the forge shows at one moment, and the newest
// one alone says where the pull request stands. A look that is lost is made up
// for by the next one, one that is doubled sees the same, and one that is late
// is older than what is known:
//
//	                   +--> foreign    it is not the pull request of this change: nothing follows
//	                   +--> elsewhere  it is to be merged, or was, into another branch: waits for a person
//	                   +--> merged     whoever did that; what was merged is proved from the repository
//	                   +--> outdated   its head is one that was pushed before: the forge has not seen the newest push yet
//	                   +--> edited     another one moved the head branch: it is never overwritten
//	a look ----------->+--> closed     waits for a person; one who opens it again is seen by the next look
//	                   +--> unwanted   a person who may asks for changes
//	                   +--> failing    a check that has to pass failed, there or in the forge's merge queue
//	                   +--> removed    a person took it out of the merge queue: waits for a person
//	                   +--> queued     the forge merges it by itself, on whatever tip
//	                   +--> pending    a check that has to pass has not ended
//	                   +--> blocked    the forge would not merge it yet, as where an approval is missing
//	                   +--> behind     nothing is in its way but that the base branch has moved: it has to be put on the tip
//	                   +--> ready      it may be merged, as long as its head is the one that was looked at
//
// The first that holds counts, from the top. What is merged is a fact also where
// the head is another one: the rest of the rules find out what was merged. What
// a person asks for comes before what a check says, since it leads to another
// change anyway.
//
// Who can lie: the text of a pull request, in which the gateway finds again whose it is, can
// be edited by whoever may write to the repository. So a look counts only if its number, or
// where that is not known yet its branches, are those of the change, whatever the gateway
// takes it for. A review counts only if the forge lets its author decide and the operator
// knows who that is: everyone may press "approve" or "request changes" on a public repository.
// An approval counts for the patch that it was given for, on whatever base that is, and for no
// other. A forge may count one that was given for another patch, and how many it wants is not
// known here: so as long as it shows one, that one is waited for to be given again, or
// dismissed. A wish is heard once. Only who wished can take it back, so one that the change
// was made again for is waited for, and does not have it made again. Its words are known by
// their parts, since the whole changes as soon as one of its remarks is resolved, or its line
// moves. A check counts by its name, and one that is named and not there has not ended. Where
// none are named, one at least has to be there: a forge shows none until its CI has begun.
package pull

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Status is where a pull request stands.
type Status string

// The statuses, in the order in which they count.
const (
	// Foreign is another pull request than the one of the change.
	Foreign Status = "foreign"
	// Elsewhere has another base branch than the one of the change: a person, or
	// the forge, moved it there.
	Elsewhere Status = "elsewhere"
	// Merged is on the base branch.
	Merged Status = "merged"
	// Outdated has a head that was pushed before the present one.
	Outdated Status = "outdated"
	// Edited has another head than the one that was pushed.
	Edited Status = "edited"
	// Closed is not merged, and not open.
	Closed Status = "closed"
	// Unwanted is one of which a person who may asks for changes.
	Unwanted Status = "unwanted"
	// Failing has a check that failed.
	Failing Status = "failing"
	// Removed was taken out of the merge queue for another reason than a failed
	// check or a conflict.
	Removed Status = "removed"
	// Queued is in the forge's merge queue. That the base branch moves changes
	// nothing: the queue merges it on the tip.
	Queued Status = "queued"
	// Pending has a check that has not ended.
	Pending Status = "pending"
	// Blocked is held up by the forge.
	Blocked Status = "blocked"
	// Behind has to be put on the tip of the base branch, and nothing else.
	Behind Status = "behind"
	// Ready may be merged.
	Ready Status = "ready"
)

// Ours names the branch that was pushed for a change, and the pull request that
// was made of it.
type Ours struct {
	// Branch and Base are the names of the head branch and of the one to merge
	// into.
	Branch, Base string
	// Head is the commit that was pushed last.
	Head string
	// Patch identifies the change of Head, whatever it is based on.
	Patch string
	// Parent and Tree are those of Head, which was verified there.
	Parent, Tree string
	// Number is that of the pull request; 0 until it is known.
	Number int
	// Former are the heads before Head, the newest last.
	Former []Head
	// TakenUp are the wishes that the change was made again for.
	TakenUp []Wish
	// Remarks are the parts of TakenUp that gateways name.
	Remarks []Remark
	// Settled identifies the last time that it was taken out of the merge queue
	// before Head was proposed: what follows from that is over.
	Settled string
	// Stuck is Head if it was taken out for a conflict before and is in none on the
	// tip: the conflict is with another change of the queue.
	Stuck string
	// Unanswered are those in threads that have no answer at the forge yet.
	Unanswered []Remark
	// Barred are the people whose approval of Head does not count, because they
	// made or adopted it: see forge.Adoption.
	Barred []string
	// Replaced is the number of the newest adoption whose commit was replaced
	// by the rebased change; 0 if none was.
	Replaced int
}

// The causes for which a merge queue takes a pull request out; another one is for
// a person.
const (
	QueueChecks   = "checks"
	QueueConflict = "conflict"
	QueueOther    = "other"
)

// maxKept bounds the former heads and the wishes that are kept, and maxRemarks
// the remarks: older ones are shown by no look that matters.
const (
	maxKept    = 32
	maxRemarks = 512
)

// Head is a commit that was pushed for the change.
type Head struct{ Commit, Patch, Parent, Tree string }

// Push notes that the head branch was pushed.
func (o *Ours) Push(h Head) {
	if o.Head != "" && o.Head != h.Commit {
		o.Former = keep(append(slices.Clip(o.Former), o.present()), maxKept)
	}
	o.Head, o.Patch, o.Parent, o.Tree = h.Commit, h.Patch, h.Parent, h.Tree
}

// Replaces reports whether a push may take the place of the commit of an
// adoption: once for each. It is asked by the number and not by the commit,
// which a person may put back after it was replaced, and adopt again.
func (o *Ours) Replaces(a *forge.Adoption) bool { return a != nil && a.Number > o.Replaced }

// Replace notes that what is pushed next takes the place of a commit of another
// one, which the change began with. A look that still shows that commit says
// nothing new, and whoever merges it merges what was verified nowhere.
func (o *Ours) Replace(a *forge.Adoption) {
	if o.Replaced = a.Number; !o.knows(a.Commit) {
		o.Former = keep(append(slices.Clip(o.Former), Head{Commit: a.Commit}), maxKept)
	}
}

// knows reports whether a commit is at the head branch, or was before, with the
// consent of the rules.
func (o *Ours) knows(commit string) bool { return commit == o.Head || o.isFormer(commit) }

// present returns the commit that was pushed last.
func (o *Ours) present() Head { return Head{o.Head, o.Patch, o.Parent, o.Tree} }

// Merged returns the commit that was merged, as it was pushed: a person may
// merge a former one while the next is on its way. What was merged at a head
// that is none of ours has to be the present one, and is found not to be that.
func (o *Ours) Merged(seen *forge.PullRequest) Head {
	for _, h := range o.Former {
		if h.Commit == seen.Head && seen.Head != o.Head {
			return h
		}
	}
	return o.present()
}

// keep returns the newest entries of a list.
func keep[T any](list []T, most int) []T { return list[max(len(list)-most, 0):] }

// isFormer reports whether a commit was pushed for the change before the present
// one.
func (o *Ours) isFormer(commit string) bool {
	return commit != o.Head && slices.ContainsFunc(o.Former, func(h Head) bool { return h.Commit == commit })
}

// patchOf returns the change of a head; empty if it is none of ours.
func (o *Ours) patchOf(commit string) string {
	if commit == o.Head {
		return o.Patch
	}
	for _, h := range o.Former {
		if h.Commit == commit {
			return h.Patch
		}
	}
	return ""
}

// foreign reports whether a look saw another pull request. Only the number is
// for ever: the head branch may be deleted after a merge, and people may move a
// pull request to another base branch.
func (o *Ours) foreign(seen *forge.PullRequest) bool {
	if o.Number != 0 {
		return seen.Number != o.Number
	}
	return seen.Branch != o.Branch || seen.Base != o.Base
}

// Status returns where a pull request stands, as it was seen.
func (o *Ours) Status(p *forge.PullPolicy, seen *forge.PullRequest) Status {
	switch {
	case o.foreign(seen):
		return Foreign
	case seen.Base != o.Base:
		return Elsewhere
	case seen.State == forge.PullMerged:
		return Merged
	case seen.State == forge.PullOpen && o.isFormer(seen.Head):
		return Outdated
	case seen.Head != o.Head && !o.isFormer(seen.Head) || seen.Branch != o.Branch && seen.Branch != "":
		return Edited
	case seen.State == forge.PullClosed:
		return Closed
	case len(o.Wishes(seen)) > 0:
		return Unwanted
	}
	return o.progress(p, seen)
}

// progress returns where a pull request stands that is open and at our head, and
// whose change no person asks to be made again.
func (o *Ours) progress(p *forge.PullPolicy, seen *forge.PullRequest) Status {
	failing, pending := checks(p, seen)
	switch out := o.out(seen); {
	case len(failing) > 0, out == QueueChecks:
		return Failing
	case out != "" && out != QueueConflict, out != "" && o.Stuck == o.Head: // putting it in again and again would change nothing
		return Removed
	case isQueued(seen):
		return Queued
	case pending:
		return Pending
	case o.blocked(seen) != "":
		return Blocked
	case seen.Behind, out == QueueConflict: // on the tip it is found where it conflicts
		return Behind
	}
	return Ready
}

// blocked returns why a pull request may not be merged although its checks
// passed; empty if it may.
func (o *Ours) blocked(seen *forge.PullRequest) string {
	another, own, others := false, "", false
	for i := range seen.Reviews {
		switch r := &seen.Reviews[i]; {
		case !r.May || r.Person == "":
		case r.Verdict == forge.PullChangesRequested: // a heard one: the others are wishes
			return r.Person + " asked for changes, and has not said yet whether these are they"
		case r.Verdict == forge.PullApproved && (o.Patch == "" || o.patchOf(r.Commit) != o.Patch):
			another = true
		case r.Verdict == forge.PullApproved && slices.ContainsFunc(o.Barred, func(name string) bool { return strings.EqualFold(name, r.Person) }):
			own = r.Person
		case r.Verdict == forge.PullApproved:
			others = true
		}
	}
	switch {
	case seen.Blocked == "" && another:
		return "what was approved is another change"
	case seen.Blocked == "" && own != "" && !others: // the forge takes pfl-forge for who pushed it
		return own + " adopted its commit, or made it: another person has to approve (policy.approvals.not_requester)"
	}
	return seen.Blocked
}

// Words says, for a person, what a pull request waits for.
func (o *Ours) Words(p *forge.PullPolicy, seen *forge.PullRequest) string {
	switch o.Status(p, seen) {
	case Elsewhere:
		return "is to be merged into " + seen.Base
	case Edited:
		return "has commits of another one on its branch"
	case Closed:
		if seen.By == "" {
			return "was closed"
		}
		return "was closed by " + seen.By
	case Unwanted:
		return "is asked to be changed"
	case Failing:
		return "has checks that failed"
	case Removed:
		return "was taken out of the merge queue: " + seen.Queue.Reason
	case Queued:
		if seen.Queue.Position > 0 {
			return fmt.Sprintf("is in the merge queue, at place %d", seen.Queue.Position)
		}
		return "is to be merged by the forge, as soon as its rules are met"
	case Pending:
		return "waits for its checks"
	case Blocked:
		return "waits: " + o.blocked(seen)
	case Behind:
		return "waits to be put on the tip of the base branch"
	case Ready:
		return "waits to be merged"
	case Merged:
		return "is merged"
	case Outdated, Foreign:
	}
	return "waits for the forge to show what was pushed"
}

// IsNews reports whether a look says more than the one before it: it is not
// older, and saw something else. Where clocks of two gateways differ, a look may
// be taken for an older one; the next look of the same gateway is newer.
func IsNews(known, seen *forge.PullRequest) bool {
	return known == nil || !seen.Seen.Before(known.Seen) && !same(known, seen)
}

// same reports whether two looks saw the same. Lists are compared in their
// order, which a gateway keeps.
func same(a, b *forge.PullRequest) bool {
	return a.Number == b.Number && a.URL == b.URL && a.Branch == b.Branch && a.Base == b.Base && a.Head == b.Head && a.State == b.State &&
		a.MergeCommit == b.MergeCommit && a.By == b.By && a.Blocked == b.Blocked && a.Behind == b.Behind && sameQueue(a.Queue, b.Queue) &&
		slices.Equal(a.Checks, b.Checks) && slices.EqualFunc(a.Reviews, b.Reviews, sameReview)
}

// Name names a pull request for people, as owner/name#7, which GitLab spells
// with !, if its address says in which repository it is.
func Name(seen *forge.PullRequest) string {
	number := strconv.Itoa(seen.Number)
	_, place, _ := strings.Cut(seen.URL, "://")
	_, place, _ = strings.Cut(place, "/")
	for _, way := range [][2]string{{"/pulls/", "#"}, {"/pull/", "#"}, {"/-/merge_requests/", "!"}} {
		if repository, ok := strings.CutSuffix(place, way[0]+number); ok && repository != "" {
			return repository + way[1] + number
		}
	}
	return "pull request " + number
}
