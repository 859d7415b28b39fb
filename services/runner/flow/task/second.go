package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxDisputes is how often in a row the reviewers of a task may disagree before a
// person decides.
const maxDisputes = 2

// AnswerReject is the answer by which a person rejects a disputed change, as
// messages.AnswerApprove is the other one. It may have words after it, which are feedback.
const AnswerReject = "reject"

// Seconded says how far the reviews of a task are, where one answer is not all that
// they take.
type Seconded struct {
	// Inquiry has the checks that the reviewer of this moment asked for, be it the
	// first or the second.
	Inquiry Inquiry
	// Second is the one that the review of this moment is by; nil if that is the
	// first.
	Second *forge.Reviewer
	// Disputes counts how often in a row the second rejected what the first
	// approved.
	Disputes int
	// Answered is the agent that made the newest first review, with the model that its
	// program reported.
	Answered forge.Reviewer
	// Policy is the commit of the base branch whose file said how many reviewers the
	// newest verdict takes.
	Policy string
}

// Pair decides on the reviews of two. The methods stand on a type of their own,
// which has no state.
type Pair struct{ *Task }

// NeedsSecond reports whether changes of an intent need the approval of a second
// reviewer. The check of a recipe has none: its exit code is a fact.
func NeedsSecond(p *forge.Policy, in *forge.Intent) bool {
	return p.Second.By.Agent != "" && slices.Contains(p.Second.When, in.Risk) && in.Recipe == ""
}

// Combine makes one verdict from those of two reviewers, which code made of the
// claims of each. second is nil before it is asked for; two says that it is needed.
// A second review of something else than the first, or by the same reviewer, counts
// as none: then one approval is all that there is.
func Combine(first, second *forge.Review, two bool) On {
	switch {
	case first.Verdict != forge.VerdictApproved:
		// One rejection is enough, so the second reviewer is not asked after it.
		return Rejected
	case !two:
		return Approved
	case second == nil || apart(first, second) != nil:
		// Half of what is needed. It leads to the second reviewer and nowhere else.
		return FirstApproved
	case second.Verdict == forge.VerdictApproved:
		return Approved
	}
	// A verdict that is no word of ours is no approval either.
	return Disagreed
}

// apart returns why a review is none by a second reviewer, of exactly what the
// first has read.
func apart(first, second *forge.Review) error {
	switch {
	case first.Second || !second.Second:
		// The first one's answer, told once more in another attempt.
		return errors.New("the review is not one by the second reviewer")
	case first.TaskID != second.TaskID || first.Head != second.Head:
		// A rebase between the two makes another commit, which has no approval
		// yet.
		return errors.New("the reviews are not of the same commit")
	case first.By == second.By:
		// The same model twice errs twice in the same way.
		return fmt.Errorf("the first reviewer, %s, reviewed again; the second has to be another one", by(second))
	}
	return nil
}

// Asked reports whether an attempt of a step is the second reviewer's.
func (t Pair) Asked(step forge.Step) bool { return step == forge.StepReview && t.Second != nil }

// First returns the review by the first reviewer that the second one is asked
// about.
func (t Pair) First() *forge.Review {
	if n := len(t.Reviews); n > 0 && t.Second != nil {
		return &t.Reviews[n-1]
	}
	return &forge.Review{}
}

// Refuse returns why a review is not the one that is waited for: it has to be by
// the reviewer who was asked. That it is of an open attempt was looked at before;
// but a worker that answers for the second with what the first said (an old one,
// which does not know of a second, or one that lies) has the right attempt.
//
// answered is the agent, with the model that its program reported. The proofs say no
// other names, and models that are configured apart may be one: "opus", and what the
// program takes by default. What verify-commit would refuse for good is not merged.
func (t Pair) Refuse(rv *forge.Review, answered forge.Reviewer) error {
	switch {
	case t.Second == nil && rv.Second:
		return errors.New("the first review is waited for, and this is one by the second reviewer")
	case t.Second == nil:
		return nil
	}
	if err := apart(t.First(), rv); err != nil {
		return err
	}
	if answered.Agent != "" && answered == t.Answered {
		return fmt.Errorf("both reviews were made by %s, as its program says; the second has to be by another one: "+
			"change review.second on the base branch", words(answered))
	}
	return nil
}

// Last returns the reviews that the newest verdict was made of.
func (t Pair) Last() []forge.Review {
	n := len(t.Reviews)
	if n > 1 && t.Reviews[n-1].Second {
		return t.Reviews[n-2:]
	}
	return t.Reviews[max(n-1, 0):]
}

// ask sets who makes the next review of a stage that is entered. Every way into a
// review but one is to the first reviewer, so an approval of the first never
// outlives the commit that it is of.
func (t Pair) ask(x *Turn, row Row) {
	t.Second = nil
	if row.On == FirstApproved {
		t.Second = new(x.Policy.Second.By)
	}
}

// halfway reports whether a change that one reviewer approved needs another one by the policy of
// this moment, which may have been read while the change waited for a person.
func (t Pair) halfway(x *Turn) bool {
	last := t.Last()
	return t.Stage == Protected && len(last) == 1 && NeedsSecond(x.Policy, x.Intent)
}

// seconded has the second reviewer asked.
func (t Pair) seconded(x *Turn) {
	t.step(x, Input{On: FirstApproved, Detail: fmt.Sprintf("risk %s: %s", x.Intent.Risk, words(x.Policy.Second.By))})
}

// disagree takes a rejection of what the first reviewer approved. The second one in
// a row is for a person.
func (t Pair) disagree(x *Turn) {
	x.Correct("rejected")
	t.Disputes++
	// Both texts go to the author: what the first found to be fine has to stay so,
	// and it may answer the second one's objection.
	feedback := t.texts()
	if t.Disputes < maxDisputes {
		t.rejected(x, Disagreed, feedback)
		return
	}
	// What was approved before the reviewers came to disagree about it is not what
	// is asked for now.
	t.Cleared = Clearance{}
	// The question names the commit, so that an answer to an earlier one is not
	// taken for it.
	x.Intent.Clarifications = append(slices.Clip(x.Intent.Clarifications), forge.Clarification{
		Question: fmt.Sprintf("The reviewers of %s disagree again, now about commit %.12s. Does it count as approved?", t.ID, t.Head),
		Context:  feedback, SuggestedAnswers: []string{messages.AnswerApprove, AnswerReject}, Task: t.ID,
	})
	t.step(x, Input{On: DisagreedAgain, Detail: cause.Gist(feedback), Why: "its reviewers disagree again, so you decide: " + rule.FirstLine(feedback)})
}

// Rejects reports whether a person's answer says that a disputed change is
// rejected, and returns the words that follow. All else is neither: who means
// to approve, and writes "yes", has not asked for another attempt.
func Rejects(answer string) (words string, is bool) {
	answer = strings.TrimSpace(answer)
	n := len(AnswerReject)
	if len(answer) < n || !strings.EqualFold(answer[:n], AnswerReject) {
		return "", false
	}
	if next, _ := utf8.DecodeRuneInString(answer[n:]); unicode.IsLetter(next) || unicode.IsDigit(next) {
		return "", false // "rejected"
	}
	return strings.TrimLeftFunc(answer[n:], func(r rune) bool { return unicode.IsSpace(r) || unicode.IsPunct(r) }), true
}

// Decided goes on with a person's word on a change that its reviewers disagree
// about. by is their approval of exactly this change; nil if it has to be approved
// in the way of protected paths.
func (t Pair) Decided(x *Turn, answer string, by *approval.Granted) {
	said := t.texts()
	t.Failure = ""
	switch {
	case !messages.Approves(answer):
		// A person has taken sides, so the next disagreement is the first of
		// another row.
		t.Disputes = 0
		said += "\n\nA person decided that it is rejected."
		if words, _ := Rejects(answer); words != "" {
			said += " They say: " + words
		}
		t.rejected(x, Rejected, said)
	case t.Word.NothingToDo != "":
		// Nothing is merged, so there is no change that an approval could be of.
		t.Disputes = 0
		Said(t).confirmed(x)
	case by != nil:
		t.Clear(x, by)
	default:
		// Disputes stays, so it is guarded whatever files it changes.
		t.Approved(x)
	}
}

// texts returns the words of both reviewers, named apart. The first line, which is
// all that lists show, has the reason of the rejection. What the first has seen
// stands beside it: the next attempt must not break what was fine.
func (t Pair) texts() string {
	pair := t.Last()
	if len(pair) < 2 {
		return ""
	}
	first, second := &pair[0], &pair[1]
	var b strings.Builder
	why := rule.FirstLine(strings.Join(second.Issues, "\n"))
	fmt.Fprintf(&b, "the second reviewer, %s, rejects what the first, %s, approves: %s\n", by(second), by(first), why)
	for i, rv := range []*forge.Review{first, second} {
		fmt.Fprintf(&b, "\nThe %s reviewer, %s, says: %s.", [...]string{"first", "second"}[i], by(rv), rv.Verdict)
		for k := range rv.Claims {
			if c := &rv.Claims[k]; c.Counts() {
				fmt.Fprintf(&b, "\n- Requirement %d is met (%s)%s", c.Number, c.Text, wordsOf(c))
			}
		}
		for _, issue := range rv.Issues {
			fmt.Fprintf(&b, "\n- %s", issue)
		}
		for _, s := range rv.Suggestions {
			fmt.Fprintf(&b, "\n- Suggestion: %s", s)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// wordsOf returns the reviewer's own words on a claim, and its evidence.
func wordsOf(c *forge.Claim) string {
	var refs []string
	for i := range c.Evidence {
		refs = append(refs, c.Evidence[i].String())
	}
	text := strings.TrimSpace(c.Note)
	if text != "" {
		text = ": " + text
	}
	if len(refs) > 0 {
		text += " [" + strings.Join(refs, ", ") + "]"
	}
	return text
}

// by returns who made a review, in words.
func by(rv *forge.Review) string { return words(rv.By) }

// words returns a reviewer in words.
func words(r forge.Reviewer) string {
	switch {
	case r.Agent == "":
		return "an unknown one"
	case r.Model == "":
		return r.Agent
	}
	return r.Agent + " with " + r.Model
}
