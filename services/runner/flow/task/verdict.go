package task

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// decide makes the verdict of a review from its claims and issues, whatever it says
// itself: the change is approved if it says so, has no issue, and every requirement is
// shown to be met. Otherwise it is rejected, and every reason is one of the issues.
//
// A recipe's check has no claims: its exit code is a fact.
func decide(x *Turn, t *Task, rv *forge.Review) {
	Decide(rv, &t.Task, x.Intent.Recipe != "", x.Policy.MinConfidence)
}

// Decide is decide for a review of a task whose turn is over: least is the
// confidence that a claim needs.
func Decide(rv *forge.Review, t *forge.Task, recipe bool, least float64) {
	said, issues := rv.Verdict, len(rv.Issues)
	var unmet, why []string
	if !recipe {
		rv.Claims, unmet, why = rule.Verdict("Requirement", t.Required(), rv.Claims, least)
		if t.Head != t.Base && len(unmet)+len(why) == 0 && !rule.Stands(rv.Claims) {
			why = append(why, "no evidence of the review is about what the change does: all of it was so before")
		}
		if issues == 0 || said == forge.VerdictApproved {
			why = append(unmet, why...) // otherwise the issues say it
		}
	}
	switch {
	case said == forge.VerdictApproved && issues > 0:
		why = append(why, "the review approves the change and names an issue; with an issue it is rejected")
	case said == forge.VerdictRejected && issues == 0 && len(why) == 0:
		why = append(why, "the review rejects the change, and names neither an issue nor a requirement that is not met")
	}
	rv.Issues = append(rv.Issues[:issues:issues], why...)
	if rv.Verdict = forge.VerdictApproved; said != forge.VerdictApproved || len(rv.Issues) > 0 {
		rv.Verdict = forge.VerdictRejected
	}
}
