package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// The two reviewers of a project that has a second one.
var (
	firstReviewer  = forge.Reviewer{Agent: "claude", Model: "sonnet"}
	secondReviewer = forge.Reviewer{Agent: "codex"}
)

// anySecond chooses the policy about a second reviewer: in most seeds there is none.
func anySecond(rng *rand.Rand) forge.SecondReview {
	if rng.IntN(3) > 0 {
		return forge.SecondReview{}
	}
	return forge.SecondReview{By: secondReviewer, When: []forge.Risk{forge.RiskLow, forge.RiskMed, forge.RiskHigh}}
}

// review gives a verdict on the head of a task, for the reviewer that is asked. Now
// and then a worker answers for the second what the first said, in the first's name
// or in its own.
func (w worker) review(c *forge.Command) *forge.Result {
	rv := forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: facts.Claims(w.chance, c.Task.Required()), By: firstReviewer}
	w.workers.asked[reviewed{c.Task.ID, c.Task.Head}] = c.Task.Required()
	if c.Intent.Recipe != "" {
		return &forge.Result{Output: facts.Checked(c, w.chance)}
	}
	program := firstReviewer // as it reports itself, whatever the review says
	if in := c.Review(); in.Second != nil {
		rv.By, rv.Second, program = *in.Second, true, *in.Second
		switch {
		case w.chance(12):
			rv.By = in.First
		case w.chance(11):
			rv.Second = false
		}
	}
	if w.chance(6) {
		rv.Verdict, rv.Issues = forge.VerdictRejected, []string{"not good"}
	}
	if w.chance(20) {
		rv.Verdict = forge.VerdictApproved // with its issue, if it has one
	}
	w.asks(&rv, c.Review().MayAsk)
	r := &forge.Result{Output: &rv, Agent: program.Agent, Model: program.Model}
	if w.chance(12) { // what is configured apart turns out to be one model
		r.Agent, r.Model = firstReviewer.Agent, firstReviewer.Model
	}
	return r
}

// answer returns a person's answer to a question, and whose it is. What the
// reviewers of a task disagree about is approved or rejected; by whom may do so
// only if they are willing.
func (w *world) answer(s *forge.Summary, willing bool) (string, *forge.Answer) {
	list := w.view(s.Key).Intent.Clarifications
	a := &forge.Answer{Index: w.openQuestion(s.Key), Answer: "so"}
	if a.Index >= len(list) || len(list[a.Index].SuggestedAnswers) == 0 {
		return "", a
	}
	a.Answer = []string{"approve", "reject", "reject: so", "Approve."}[w.rng.IntN(4)]
	// Without the question it approves nothing, whatever its answer is.
	if w.rng.IntN(4) > 0 {
		a.Question = list[a.Index].Question
	}
	return w.approver(s, willing), a
}

// opinions are the approvals of one commit, or of a patch, by their reviewers and
// by a person who decided between them.
type opinions struct {
	first, second, person bool
	// task is the one whose review has approved it first, and newest the number of its newest
	// review.
	task   forge.TaskID
	newest int
}

// enough reports whether a patch may be merged with these where two reviewers are needed.
func (o opinions) enough() bool { return o.first && (o.second || o.person) }

// pairs returns the approvals of each commit, by the results and answers in the
// journals. It reads no state of a machine, which might be wrong in the same way as
// its decisions.
func pairs(w *world) map[string]opinions {
	of := map[string]opinions{}
	for _, key := range w.keys {
		second := map[forge.Attempt]bool{} // the attempts whose commands asked for a second review
		for _, rec := range w.journal[key] {
			for _, ev := range rec.Events {
				if a := forge.As[*forge.Answer](ev.Message); a != nil {
					head := disputed(a)
					o := of[head]
					o.person = true
					of[head] = o
				}
				if r := forge.As[*forge.Result](ev.Message); r != nil {
					w.addReview(of, r, second[r.Attempt])
				}
			}
			for i := range rec.Effects.Commands {
				c := &rec.Effects.Commands[i]
				second[c.Attempt] = c.Review().Second != nil
			}
		}
	}
	return of
}

// addReview adds a review to what was approved. What counts for whom is said in words
// of its own: it is the second's if its command asked for that, and if it does not
// say that it is another's. The first reviewer's newest word counts: where a review ended
// after a pause, that pause has asked for another one.
func (w *world) addReview(of map[string]opinions, r *forge.Result, second bool) {
	rv := forge.As[*forge.Review](r.Output)
	if rv == nil || w.askedFirst(r) {
		return
	}
	approved := rv.Verdict == forge.VerdictApproved && len(rv.Issues) == 0 && facts.Shown(w.workers.asked[reviewed{rv.TaskID, rv.Head}], rv.Claims)
	o := of[rv.Head]
	switch n := r.Attempt.Number; {
	case !second && rv.TaskID == o.task && n < o.newest: // it was void when it came
	case !second && approved:
		o.first, o.task, o.newest = true, rv.TaskID, n
	case !second && rv.TaskID == o.task:
		o.first = false
	case approved && rv.Second && rv.By == secondReviewer && (forge.Reviewer{Agent: r.Agent, Model: r.Model}) != firstReviewer:
		o.second = true
	}
	of[rv.Head] = o
}

// disputed returns the commit that an answer approves although its reviewers
// disagree; empty if it does not.
func disputed(a *forge.Answer) string {
	_, rest, found := strings.Cut(a.Question, "about commit ")
	head, _, _ := strings.Cut(rest, ".")
	if !found || a.Answer != "approve" {
		return ""
	}
	return head
}

// checkPairs returns an error if a commit of ours on the base branch was approved
// by fewer reviewers than it takes. A goal is judged instead, by criterion.
func (w checker) checkPairs() error {
	if w.money.second.By.Agent == "" {
		return nil
	}
	judged := map[forge.TaskID]bool{}
	for r := range results(w.world) {
		if forge.As[*forge.Judgment](r.Output) != nil {
			judged[r.Attempt.Task] = true
		}
	}
	// By patch, since a change that is rebased and stays the same keeps its
	// reviews; but both have to be of one commit, as one of each of two commits is
	// what a rebase between them would make.
	enough := map[string]bool{} // by patch: what is rebased without a change keeps its reviews
	for head, o := range pairs(w.world) {
		if o.enough() {
			enough[w.repo.Heads[head].Patch] = true
		}
	}
	for i := range w.repo.Main {
		if c := &w.repo.Main[i]; c.Task != "" && !judged[c.Task] && !enough[c.Patch] {
			return fmt.Errorf("commit %s of %s was not approved by two reviewers", c.ID, c.Task)
		}
	}
	return nil
}

// reviewed is a head of a task. Two tasks can have the same one: a task that finds nothing to do is
// reviewed at its base, which is the commit of another.
type reviewed struct {
	task forge.TaskID
	head string
}
