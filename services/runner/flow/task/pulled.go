package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Pulled has the rules about the pull request of a task.
type Pulled struct{ *Task }

// Waits takes that the project tells of the merge that the task waits for, and
// reports whether it does: each time it says where the pull request is, and the
// newest counts.
func (t Pulled) Waits(m *forge.MergeEnded) bool {
	if m.Number != t.Requests || t.Stage != Merging && t.Stage != Held || m.Look != 0 && m.Look <= t.Look {
		return false
	}
	t.Look = m.Look
	if t.Stage == Held { // whatever it says, the person was asked about what was before
		t.Stage, t.Failure = Merging, ""
	}
	return true
}

// GoesOn reports whether a request to merge is still in force: it waits for a
// person, or for a pull request that a person was asked about before.
func GoesOn(m *forge.MergeResult) bool {
	switch m.Outcome {
	case forge.MergeClosed, forge.MergeEdited, forge.MergeDenied, forge.MergeOverdue, forge.MergeProposed:
		return true
	default:
		return false
	}
}

// answered takes the outcome of the pull request.
func (t Pulled) answered(x *Turn, m *forge.MergeResult) {
	seen := m.Pull
	if seen == nil {
		seen = &forge.PullRequest{Branch: m.Branch}
	}
	switch m.Outcome {
	case forge.MergeChecksFailed:
		t.step(x, Input{On: ChecksFailed, Feedback: checksFeedback(seen)})
	case forge.MergeUnwanted:
		if t.Wishes++; t.Wishes > MaxWishes {
			t.CannotMerge(x, fmt.Sprintf("changes were asked for more than %d times at %s", MaxWishes, name(seen)))
			return
		}
		Wished(t).again(x, wishes(seen), name(seen)+": "+strings.Join(wishers(seen), ", "))
	case forge.MergeClosed, forge.MergeEdited:
		t.held(x, whyHeld(m.Outcome, seen, m.BaseBranch), "When that is as you want it")
	case forge.MergeDenied:
		t.held(x, fmt.Sprintf("the forge refuses %s: %s", name(seen), m.Refusal), "It is asked again every 10 minutes. When that is mended")
	case forge.MergeOverdue:
		if len(seen.Checks) > 0 { // those that are waited for
			t.held(x, m.Refusal, "It goes on by itself when they have ended. To propose it anew")
			return
		}
		t.held(x, fmt.Sprintf("%s has waited for a day: it %s", name(seen), m.Refusal), "It goes on by itself when that is over. To propose it anew")
	default: // it goes on
	}
}

// held has the task wait for a person, who is told why, and when to say retry.
func (t Pulled) held(x *Turn, why, when string) {
	t.step(x, Input{On: PullHeld, Detail: why, Why: why + ". " + when + ": pfl-forge retry " + string(x.Intent.ID)})
}

// name names a pull request, for people.
func name(p *forge.PullRequest) string {
	if p.Number == 0 {
		return "the branch " + p.Branch
	}
	return fmt.Sprintf("pull request %d", p.Number)
}

// whyHeld says why a pull request into a base branch waits for a person.
func whyHeld(o forge.MergeOutcome, p *forge.PullRequest, base string) string {
	switch {
	case o == forge.MergeEdited:
		return fmt.Sprintf("%s was changed by another one, and is not overwritten", branch(p))
	case p.State == forge.PullMerged && p.Base == base:
		return fmt.Sprintf("the forge says that %s is merged, and %s does not have it as far as that can be read", name(p), base)
	case p.State == forge.PullOpen && p.Base == base && p.Queue != nil:
		return fmt.Sprintf("%s was taken out of the merge queue: %s", name(p), p.Queue.Reason)
	case p.State != forge.PullClosed:
		return fmt.Sprintf("%s is to be merged into %s now", name(p), p.Base)
	case p.By == "":
		return name(p) + " was closed"
	}
	return name(p) + " was closed by " + p.By
}

// branch names the branch of a pull request.
func branch(p *forge.PullRequest) string {
	if p.Number == 0 {
		return name(p)
	}
	return fmt.Sprintf("the branch %s of %s", p.Branch, name(p))
}

// checksFeedback returns the feedback on a change on which checks of the forge
// failed. Its first line is all that lists show.
func checksFeedback(p *forge.PullRequest) string {
	var names []string
	var b strings.Builder
	for _, c := range p.Checks {
		names = append(names, fmt.Sprintf("%q", c.Name))
		fmt.Fprintf(&b, "\n\n%s failed:\n%s", c.Name, c.Output)
	}
	return "checks of the forge failed: " + strings.Join(names, ", ") + b.String()
}

// wishes returns the feedback on a change that people ask to be changed: their
// words, of which commit they are.
func wishes(p *forge.PullRequest) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks for changes", strings.Join(wishers(p), ", "))
	for _, r := range p.Reviews {
		fmt.Fprintf(&b, "\n\n%s about commit %s:\n%s", r.Person, r.Commit, r.Text)
	}
	return b.String()
}

// wishers returns who asks for changes.
func wishers(p *forge.PullRequest) (list []string) {
	for _, r := range p.Reviews {
		if !slices.Contains(list, r.Person) {
			list = append(list, r.Person)
		}
	}
	return list
}

// Facts returns the contents of the pull request of the task; nil where there is
// none.
func (t Pulled) Facts(in *forge.Intent, p *forge.PullPolicy, approvers []string, usd float64) *forge.PullFacts {
	if p == nil {
		return nil
	}
	f := &forge.PullFacts{
		Request: in.Title, Approvers: approvers, CostUSD: usd, Attempts: t.Attempts, Files: t.Candidate.Files,
	}
	if in.Body != "" {
		f.Request += "\n\n" + in.Body
	}
	for _, who := range in.Requesters {
		f.Requesters = append(f.Requesters, who.Name)
	}
	if v := t.Candidate.Verify; v != nil {
		for _, run := range v.Runs {
			f.Commands = append(f.Commands, run.Command)
		}
	}
	if last := Pair(t).Last(); len(last) > 0 { // a second reviewer answers the same requirements
		for _, c := range last[0].Claims {
			f.Requirements = append(f.Requirements, requirement(&c))
		}
	}
	for _, rv := range t.Reviews {
		if rv.Verdict == forge.VerdictRejected {
			f.Rejected = append(f.Rejected, fmt.Sprintf("attempt %d: %s", rv.Attempt, strings.Join(rv.Issues, "; ")))
		}
	}
	return f
}

// requirement returns a claim of a review as people read it.
func requirement(c *forge.Claim) forge.PullRequirement {
	r := forge.PullRequirement{Text: c.Text, Met: c.Counts()}
	for _, e := range c.Evidence {
		r.Evidence = append(r.Evidence, e.String())
	}
	return r
}
