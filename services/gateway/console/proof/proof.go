// Package proof says how far the change of a task is proven, by what the journal
// of its intent has about it. It is pure: it knows neither HTML nor the API.
//
// # What counts
//
// Only what was found out about the newest change is said of it: by its patch id, or
// by its commit where there is no id. Put on another base, a change is another commit
// and the same patch. A record of a run says on which commit the commands ran, and
// that need not be the one that the change was merged on: then both are told.
package proof

import (
	"slices"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// The rules of the flow that a proof depends on, by their names in the journal.
const (
	// protectedPaths says that a person has to approve the change.
	protectedPaths = "protected-paths"
	// mergedUnproven says that what the forge merged is not what was verified.
	mergedUnproven = "merged-unproven"
	// changesRequested and rework have the change made again: the former by a
	// person, the latter by its review, or by a person who decides between two.
	changesRequested, rework = "changes-requested", "rework"
)

// Records are those of an intent that are about one of its tasks.
type Records struct {
	// Review is the last verdict on the task, and Earlier are the ones before.
	Review  *document.Review
	Earlier []document.Review
	// Failures are the times when its change could not be put on the base
	// branch, or did not pass there.
	Failures []document.Verified
	// Rules are those that changed its course.
	Rules []document.Adjustment
	// Steps are its attempts.
	Steps []document.StepRecord
}

// About picks the records about a task. Attempts and rules that are about the
// whole intent are among them.
func About(w *document.Work, id forge.TaskID) (r Records) {
	for i := range w.Reviews {
		if one := &w.Reviews[i]; one.Task == id {
			if r.Review != nil {
				r.Earlier = append(r.Earlier, *r.Review)
			}
			r.Review = one
		}
	}
	for _, one := range w.Verified {
		if one.Task == id && (len(one.Conflicts) > 0 || one.Passed != nil && !*one.Passed) {
			r.Failures = append(r.Failures, one)
		}
	}
	for _, a := range w.Adjustments {
		if a.Task == id || a.Task == "" {
			r.Rules = append(r.Rules, a)
		}
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; s.Task == id || s.Task == "" {
			r.Steps = append(r.Steps, *s)
		}
	}
	return r
}

// Proof tells how far a change is proven.
type Proof struct {
	// Verified is the last time that it was found out whether the change is good on the base
	// branch; nil if it was not. State says what came of it, and Good whether that lets it go on.
	Verified *document.Verified
	State    string
	Good     bool
	// Merged is its merge; nil before there is one. Moved says that it was
	// merged on another parent than Verified is of, and Unproven in words why
	// what was merged is not what was verified; empty if nothing says so.
	Merged   *document.Verified
	Moved    bool
	Unproven string
	// Reviewed says that the last review is one of the newest change. Met and
	// Claims count its requirements.
	Reviewed    bool
	Met, Claims int
	// Protected says that it changes protected paths. Known is false where that
	// is not known, or not yet.
	Protected, Known bool
	// Unknown says why it is not known, to stand after since; empty where it is.
	Unknown string
	// AsItWas are the reasons to look that a check gives which the change
	// alters and which fails as it was.
	AsItWas []string
	// Old counts requirements that are met by nothing but what was there before the change.
	Old int
	// Other is another review of the same commit that comes to another verdict;
	// nil if there is none.
	Other *document.Review
	// Refused is the rule by which the change is made again because of a person,
	// after all that is known of it here was found out: there is no newer one of
	// which anything is known. It is nil of a change that no person refused.
	Refused *document.Adjustment
	// Asked are the checks that its reviewers asked for, in their order.
	Asked []Asked
	// Attempts counts implementations, and CostUSD adds up everything that the task cost.
	Attempts int
	CostUSD  float64
}

// Asked is a run of a check of the project that a reviewer of the change asked
// for. What it printed is kept of those alone that did not pass.
type Asked struct {
	document.Check
	// By says in words which reviewer asked.
	By string
}

// Of returns how far the change of a task is proven. The records are those About it.
func Of(w *document.Work, t *document.Task, about *Records) (p Proof) {
	p.Attempts = t.Attempts
	p.verified(w, t)
	if about.Review != nil && current(w, t, "", about.Review.Head) {
		p.reviewed(about.Review, about.Earlier)
	}
	p.asked(w, t)
	p.refused(t, about)
	for _, a := range about.Rules {
		switch {
		case a.Task != t.ID:
		case a.Rule == protectedPaths:
			p.Protected = true
		case a.Rule == mergedUnproven && t.Commit != "":
			p.Unproven = a.Detail
		}
	}
	// A change is compared with them once it is approved by its reviewers:
	// before it is merged, that there was no reason is not known.
	cut := slices.ContainsFunc(w.Truncated, func(t document.Truncated) bool { return t.Field == "adjustments" })
	p.Known = p.Protected || t.Commit != "" && !cut
	switch {
	case p.Known:
	case t.Commit != "":
		p.Unknown = "not all rules that were applied to it are here"
	case t.Head == "":
		p.Unknown = "nothing has been changed"
	default:
		p.Unknown = "a change is compared with them once its reviewers approve it"
	}
	for i := range about.Steps {
		if about.Steps[i].Task == t.ID {
			p.CostUSD += about.Steps[i].CostUSD
		}
	}
	return p
}

// verified takes the runs of commands on the change, and its merge.
func (p *Proof) verified(w *document.Work, t *document.Task) {
	for i := range w.Verified {
		r := &w.Verified[i]
		if r.Task != t.ID {
			continue
		}
		if t.Commit != "" && r.Head == t.Commit && r.Step == forge.StepMerge {
			p.Merged = r
		}
		if !current(w, t, r.PatchID, r.Head) {
			continue
		}
		switch { // where no command ran, nothing was found out
		case len(r.Conflicts) > 0:
			p.Verified, p.State, p.Good = r, "conflicts", false
		case r.Passed != nil && *r.Passed:
			p.Verified, p.State, p.Good = r, "verified", true
		case r.Passed != nil:
			p.Verified, p.State, p.Good = r, "verify failed", false
		}
	}
	p.Moved = p.Merged != nil && p.Verified != nil && p.Merged.Base != p.Verified.Base
	if p.Verified != nil {
		p.AsItWas = slices.DeleteFunc(slices.Clone(p.Verified.Guarded), func(s string) bool { return !verdict.IsFailsAsItWas(s) })
	}
}

// reviewed takes the last review of the change, and those before it.
func (p *Proof) reviewed(r *document.Review, earlier []document.Review) {
	p.Reviewed, p.Claims = true, len(r.Claims)
	for i := range r.Claims {
		if r.Claims[i].Met {
			p.Met++
		}
		if Old(r.Claims[i]) {
			p.Old++
		}
	}
	for i := range earlier {
		if o := &earlier[i]; o.Head == r.Head && o.Verdict != r.Verdict {
			p.Other = o
		}
	}
}

// refused finds out whether a person has had the change made again since it was verified and
// reviewed. What a review itself rejects is decided on with it, and so at the same time.
func (p *Proof) refused(t *document.Task, about *Records) {
	var known time.Time
	if p.Verified != nil {
		known = p.Verified.At
	}
	if p.Reviewed && about.Review.At.After(known) {
		known = about.Review.At
	}
	if t.Commit != "" || p.Verified == nil && !p.Reviewed {
		return
	}
	for i := range about.Rules {
		if a := &about.Rules[i]; a.Task == t.ID && (a.Rule == changesRequested || a.Rule == rework) && a.At.After(known) {
			p.Refused = a
		}
	}
}

// asked takes the checks that reviewers of the change asked for.
func (p *Proof) asked(w *document.Work, t *document.Task) {
	for i := range w.Reviews {
		r := &w.Reviews[i]
		if r.Task != t.ID || !current(w, t, "", r.Head) {
			continue
		}
		by := "the reviewer"
		if r.Second {
			by = "the second reviewer"
		}
		for _, c := range r.Checks {
			p.Asked = append(p.Asked, Asked{c, by})
		}
	}
}

// Old reports whether a requirement is met by nothing but what was there before the change.
func Old(c document.Claim) bool {
	return c.Met && c.Run == nil && len(c.Evidence) > 0 && !slices.ContainsFunc(c.Evidence, func(e document.Citation) bool { return !e.Unchanged })
}

// Regression reports whether a run is a regression proof: it shows what the
// tests of a change say without the change.
func Regression(c document.Check) bool { return c.Name == verdict.RegressionProof }

// current reports whether a patch, or a commit, is the newest change of a task,
// as far as the journal says: what was found out about a former one says nothing
// about it. Put on another base, it is another commit and the same patch.
func current(w *document.Work, t *document.Task, id, head string) bool {
	if id == "" {
		for i := range w.Verified {
			if r := &w.Verified[i]; r.Task == t.ID && r.Head == head {
				id = r.PatchID
			}
		}
	}
	if id != "" && t.PatchID != "" {
		return id == t.PatchID
	}
	return head != "" && head == t.Head
}
