// Package bound keeps apart who approves and who says what is done, after the
// approval was given (docs/adr/0138). Package approval does before.
//
// Whoever puts into words what is done is a requester from then on. If an
// approval of theirs was in force, no merge with it could be proven where
// policy.approvals.not_requester is set. So such words are refused:
//
//	answer, retry with words, request changes,   while an approval of theirs of the plan counts, or of a change under way
//	reject a disputed change with words, adopt   other than the one that is made again with the words
//
// What cannot be refused makes the approval void, and another person is asked: an edit,
// which is of a plan that waits, and words that a parent passes on to a child that failed.
package bound

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Approvals are those of an intent that are in force.
type Approvals struct {
	// Gate has the approval of the plan.
	Gate *plan.Gate
	// Tasks have those of their changes.
	Tasks *task.Set
	// By is the version of the rules that decides. One without rules.BoundApprovers binds no one.
	By rules.Version
}

// asked reports whether the rules that decide know of bound people.
func (a Approvals) asked() bool { return a.By.Has(rules.BoundApprovers) }

// Binds reports whether an approval of a person counts that would be void if
// they asked for what is done. Approvals of the changes of some tasks are left
// out: again are those whose changes are made again.
func (a Approvals) Binds(by string, again ...*task.Task) bool {
	return a.asked() && (a.Gate.Approved.Voids(by) || a.Tasks.ReliesOn(by, again...))
}

// BindAny is Binds for several people.
func (a Approvals) BindAny(people []forge.Identity) bool {
	return slices.ContainsFunc(people, func(p forge.Identity) bool { return a.Binds(p.Name) })
}

// Check refuses an act of a person who is bound. act names it, in words that follow "has to".
func (a Approvals) Check(by, act string, again ...*task.Task) (forge.Decision, error) {
	return a.check(by, act, "", again...)
}

// CheckAnswer is Check for the answer to a question. Where everybody who may
// answer has approved, the question is ended in another way, which ends names,
// in words that follow "where there is none,".
func (a Approvals) CheckAnswer(by, ends string, asks *task.Task) (forge.Decision, error) {
	return a.check(by, "answer", "; where there is none, "+ends, asks)
}

// check refuses an act, and says who is bound and so cannot do it either, and what else there is.
func (a Approvals) check(by, act, instead string, again ...*task.Task) (forge.Decision, error) {
	if !a.Binds(by, again...) {
		return forge.Applied, nil
	}
	return rule.Refuse("%q approved the plan, or another change of the intent; another person than %s has to %s (policy.approvals.not_requester)%s",
		by, strings.Join(a.bound(again), ", "), act, instead)
}

// bound returns the names of all who are bound.
func (a Approvals) bound(again []*task.Task) []string {
	granted := []*approval.Granted{a.Gate.Approved}
	for _, t := range a.Tasks.Tasks {
		if !slices.Contains(again, t) && !t.Ended() {
			granted = append(granted, t.Cleared.By)
		}
	}
	var given []approval.Approval
	for _, g := range granted {
		if g != nil && g.Rules.NotRequester {
			given = append(given, g.Approvals...)
		}
	}
	return approval.Names(given)
}

// Lapse forgets the approvals of people who are among the requesters now, so that others are asked:
// of the plan before the next run, of a change before its merge. What was merged stays as it is.
func (a Approvals) Lapse(requesters []forge.Identity) {
	if !a.asked() {
		return
	}
	if a.Gate.Approved.VoidsAny(requesters) {
		a.Gate.Approved = nil
	}
	a.Tasks.Lapse(requesters)
}
