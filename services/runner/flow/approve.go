package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/bound"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// rules returns the rules for the intent, by the policy in force: that of the commit of the
// base branch which the newest plan was made on, or which a person had read since.
func (s consent) rules() *approval.Rules {
	r := &approval.Rules{
		Approvals: s.Policy.Approvals, Approvers: s.Policy.Approvers, Requesters: s.Intent.Requesters, Authors: s.Tasks.Authors(s.Intent.Requesters),
	}
	// Who may approve is the same as of a plan, so that a requester who is
	// barred pays for no request of their own.
	if s.first() {
		r.Count = 1 // it lets nothing through: as many as the policy says approve the plan
	}
	return r
}

// asked returns the kind and the hash of what has to be approved, and its
// changes: none for a text or a plan.
func (s consent) asked() (what, hash string, changes []*task.Task) {
	if s.first() {
		return approval.OfText, s.Plan.Gate.Text(&s.Intent), nil
	}
	if changes = s.Tasks.At(task.Protected); len(changes) > 0 {
		return approval.OfChanges, task.HashChanges(changes), changes
	}
	return approval.OfPlan, s.Plan.Gate.Hash, nil
}

// approve takes a person's approval of the analysis, of the plan, or of changes
// of protected paths. It has to name exactly what is there now, by its hash.
// The intent goes on when enough people have approved the same.
func (s person) approve(a *forge.Approve, by, event string) (forge.Decision, error) {
	gate := &s.Plan.Gate
	if decision, err := s.place().Check(control.Approve, ""); err != nil {
		switch {
		case gate.Approved != nil:
			return rule.Ignore("the intent is approved already")
		case gate.Cleared != "" && a.Plan == gate.Cleared:
			return rule.Ignore("that it is analyzed is approved already")
		}
		if decision, err := s.Plan.Asked.Last.Again(&approval.Wished{Hash: a.Plan}); err != nil {
			return decision, err
		}
		return decision, err
	}
	ask := consent(s)
	rules := ask.rules()
	if why, setting := rules.Objection(by); why != "" {
		return rule.Refuse("%s (%s; if that has changed: pfl-forge retry %s)", why, setting, s.key.Intent)
	}
	what, hash, changes := ask.asked()
	is, it := "is", "it"
	if len(changes) > 0 {
		is, it = "are", "them"
	}
	switch a.Plan {
	case hash:
	case "":
		return rule.Refuse("it does not say what it approves: the %s %s %s; look at %s with `pfl-forge show %s`", what, is, hash, it, s.key.Intent)
	default:
		return rule.Refuse("the %s %s %s now, not %s; look at %s with `pfl-forge show %s` and approve again", what, is, hash, a.Plan, it, s.key.Intent)
	}
	// The same wish sent again has another id, so it is known by the person.
	given := ask.given()
	if slices.ContainsFunc(given, func(g approval.Approval) bool { return approval.Same(g.By, by) }) {
		return rule.Ignore("%q approved it already; there are %s", by, rules.Progress(given))
	}
	gate.Collected.Add(approval.Approval{What: what, Hash: hash, By: by, Event: event, At: s.now})
	given = ask.given()
	if what == approval.OfText {
		what = "the analysis of text"
	}
	// The history has each approval, also those that a later edit makes void.
	if progress := rules.Progress(given); progress != "" {
		s.adjust(rule.Approved, "", "%s %s by %q: %s", what, hash, by, progress)
	} else {
		s.adjust(rule.Approved, "", "%s %s by %q", what, hash, by)
	}
	course(s).continueIfApproved()
	return forge.Applied, nil
}

// requestChanges has the plan, or changes, that wait for a person made again
// with their words. As an approval does, it has to name exactly what is there
// now, by its hash; the first one of a hash wins.
//
// A plan is dropped and made again by the step that made it, in its session: an approval
// that comes meanwhile finds no plan. Changes are made again each in its own session,
// those of one task if it is named. In both cases nothing that was approved of them
// counts any more, and whoever said what has to be different is a requester from then on.
func (s person) requestChanges(m *forge.RequestChanges, by string) (forge.Decision, error) {
	of := approval.Wished{Hash: m.Hash, Wish: forge.Wish{Person: by, Words: strings.TrimSpace(m.Words)}}
	what, hash, _ := consent(s).asked()
	planned, changes := s.Phase == control.Approval && m.Hash == hash, s.Tasks.Named(m.Hash)
	if decision, err := s.Plan.Asked.Last.Again(&of); err != nil && !planned && len(changes) == 0 {
		return decision, err
	}
	if decision, err := s.place().Check(control.Change, ""); err != nil {
		return decision, err
	}
	if err := of.Check(consent(s).rules(), s.DecidedBy); err != nil {
		return forge.Refused, err
	}
	switch {
	case s.Intent.Recipe != "":
		return rule.Refuse("recipe %q made it, and takes no words; approve it, or reject it and change the recipe", s.Intent.Recipe)
	case consent(s).first():
		return rule.Refuse("nothing is made yet that could be changed; edit the request, approve or reject it")
	case !planned && len(changes) == 0:
		return rule.Refuse("%s is not what waits now, which is %s; look at it with `pfl-forge show %s` and ask again",
			m.Hash, s.Tasks.Waits(what, hash), s.key.Intent)
	}
	if changes = task.Of(changes, m.Task); m.Task != "" && len(changes) == 0 {
		return rule.Refuse("%s is of no change of task %s", m.Hash, m.Task)
	}
	if planned && s.Plan.Asked.Spent() || slices.ContainsFunc(changes, task.Spends) {
		return rule.Refuse("changes were asked for as often as they may be in a run; approve what there is, or reject it")
	}
	if decision, err := s.bound().Check(by, "ask for changes", changes...); err != nil {
		return decision, err
	}
	s.Plan.Asked.Last = of
	s.join(approval.Words{By: by}, nil)
	s.Plan.Gate.Collected = approval.Collection{}
	for _, t := range changes {
		s.tasks(func(x *task.Turn) { task.Wished{Task: t}.Take(x, &of) })
	}
	if planned {
		s.adjust(rule.ChangesWanted, "", "%s", of.Line())
		course(s).withdrawAll()
		s.drop(&of.Wish)
		s.Reason = ""
		course(s).startStep()
	}
	return forge.Applied, nil
}

// given returns the approvals of what waits that count: one of a person who may not approve any
// more, by another policy or because their words are in the intent since, does not.
func (s consent) given() []approval.Approval {
	rules := s.rules()
	what, hash, _ := s.asked()
	return slices.DeleteFunc(slices.Clone(s.Plan.Gate.Collected.Of(what, hash)), func(a approval.Approval) bool {
		why, _ := rules.Objection(a.By)
		return why != ""
	})
}

// continueIfApproved lets go on what waits for approval, if enough people have approved
// it. It is asked after each approval, and after the policy was read again, by which
// fewer may be enough: a person who approved already could not do it once more.
func (s course) continueIfApproved() {
	ask := consent(s)
	rules, given := ask.rules(), ask.given()
	_, _, changes := ask.asked()
	if !rules.Enough(given) {
		return
	}
	if consent(s).first() {
		s.Plan.Gate.Cleared, s.Plan.Gate.Collected = s.Plan.Gate.Text(&s.Intent), approval.Collection{}
		if !s.Policy.Reading { // otherwise what is read lets it go on
			s.Reason = ""
			s.startStep()
		}
		return
	}
	// The rules go into the proofs as they are now, whatever the policy says later.
	by := &approval.Granted{Rules: rules.Approvals, Approvals: given}
	s.Plan.Gate.Collected = approval.Collection{}
	if len(changes) == 0 {
		s.Plan.Gate.Approved = by
		s.Reason = ""
		s.gate()
		return
	}
	for _, t := range changes {
		s.tasks(func(x *task.Turn) { t.Clear(x, by) })
	}
}

// names returns who approved the plan, and the changes of some tasks.
func (s consent) names(tasks ...*task.Task) []string {
	var lists [][]approval.Approval
	if g := s.Plan.Gate.Approved; g != nil {
		lists = append(lists, g.Approvals)
	}
	for _, t := range tasks {
		if g := t.Cleared.Of(t.Candidate); g != nil {
			lists = append(lists, g.Approvals)
		}
	}
	return approval.Names(lists...)
}

// arbitrate takes a person's word on a change that its two reviewers disagree about. Who says
// that it is approved approves exactly this change, by the rules of all approvals; where one
// is not enough, or it changes protected paths as well, it waits for approval from then on.
func (s person) arbitrate(t *task.Task, a *forge.Answer, by, event string) (forge.Decision, error) {
	rules := consent(s).rules()
	approves := messages.Approves(a.Answer)
	words, rejects := task.Rejects(a.Answer)
	switch {
	case !approves && !rejects:
		return rule.Refuse("%q decides nothing; answer %q, %q, or %q with your words", a.Answer,
			messages.AnswerApprove, task.AnswerReject, task.AnswerReject+": ...")
	case approves && a.Question == "":
		// The question names the commit, its index does not: a late answer would approve a commit
		// that the person has not seen. An answer that repeats another question is refused before.
		return rule.Refuse("it does not say what it approves; look at the change with `pfl-forge show %s`, "+
			"and answer with the text of the question, as `pfl-forge answer` does", s.key.Intent)
	}
	// Rejecting is open to whoever may answer: it lets nothing through. Approving is not, and an
	// answer must not be a way around the rules for approvals.
	var granted *approval.Granted
	if approves && t.Candidate != nil {
		if why, setting := rules.Objection(by); why != "" {
			return rule.Refuse("%s (%s); anybody may answer %q", why, setting, task.AnswerReject)
		}
		given := []approval.Approval{{What: approval.OfChanges, Hash: task.HashChanges([]*task.Task{t}), By: by, Event: event, At: s.now}}
		if rules.Enough(given) && !(task.Pair{Task: t}).Protects(&s.Policy.Policy) {
			granted = &approval.Granted{Rules: rules.Approvals, Approvals: given}
			s.adjust(rule.Approved, t.ID, "%s %s by %q", approval.OfChanges, given[0].Hash, by)
		} else if !(task.Pair{Task: t}).Protects(&s.Policy.Policy) {
			// One of those that it takes. What is protected besides was not in the question.
			s.Plan.Gate.Collected.Add(given[0])
		}
	}
	// Who puts into words what is to be done is a requester from then on; a
	// bare verdict is no such word.
	if words != "" {
		if decision, err := s.bound().Check(by, fmt.Sprintf("give the words, or answer just %q", task.AnswerReject), t); err != nil {
			return decision, err
		}
		s.join(approval.Words{By: by}, nil)
	}
	plan.Answer(&s.Intent, a)
	s.tasks(func(x *task.Turn) { task.Pair{Task: t}.Decided(x, a.Answer, granted) })
	return forge.Applied, nil
}

// bound returns the approvals in force, which bind those who gave them.
func (s person) bound() bound.Approvals {
	return bound.Approvals{Gate: &s.Plan.Gate, Tasks: &s.Tasks, By: s.DecidedBy}
}

// join has the people whose words these are among the requesters.
func (s person) join(from approval.Words, named []forge.Identity) {
	s.Intent.Requesters = from.Join(s.Intent.Requesters, named)
	s.bound().Lapse(s.Intent.Requesters)
}
