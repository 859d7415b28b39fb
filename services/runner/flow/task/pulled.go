package task

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
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
		t.Stage, t.Failure, t.Offer = Merging, "", nil
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
		t.step(x, Input{On: ChecksFailed, Feedback: pull.ChecksFeedback(seen)})
	case forge.MergeUnwanted:
		if t.Wishes++; t.Wishes > MaxWishes {
			t.CannotMerge(x, fmt.Sprintf("changes were asked for more than %d times at %s", MaxWishes, pull.ShortName(seen)))
			return
		}
		Wished(t).again(x, pull.WishesFeedback(seen), pull.ShortName(seen)+": "+strings.Join(pull.Wishers(seen), ", "))
	case forge.MergeClosed, forge.MergeEdited:
		why := pull.WhyHeld(m.Outcome, seen, m.BaseBranch)
		if x.Rules.Has(rules.AdoptedPulls) && m.Outcome == forge.MergeEdited && Taking(t).offer(x, m.Branch, seen) {
			t.held(x, why, Taking(t).advice(x)+". To propose the change as it was, put the branch back, or delete it. Then")
			return
		}
		t.held(x, why, "When that is as you want it")
	case forge.MergeDenied:
		t.held(x, fmt.Sprintf("the forge refuses %s: %s", pull.ShortName(seen), m.Refusal), "It is asked again every 10 minutes. When that is mended")
	case forge.MergeOverdue:
		if len(seen.Checks) > 0 { // those that are waited for
			t.held(x, m.Refusal, "It goes on by itself when they have ended. To propose it anew")
			return
		}
		t.held(x, fmt.Sprintf("%s has waited for a day: it %s", pull.ShortName(seen), m.Refusal), "It goes on by itself when that is over. To propose it anew")
	default: // it goes on
	}
}

// held has the task wait for a person, who is told why, and when to say retry.
func (t Pulled) held(x *Turn, why, when string) {
	t.step(x, Input{On: PullHeld, Detail: why, Why: why + ". " + when + ": pfl-forge retry " + string(x.Intent.ID)})
}

// Facts returns the contents of the pull request of the task; nil where there is
// none.
func (t Pulled) Facts(in *forge.Intent, p *forge.PullPolicy, approvers []string, usd float64) *forge.PullFacts {
	if p == nil {
		return nil
	}
	f := pull.Facts(in, t.Candidate, Pair(t).Last(), t.Reviews)
	f.Approvers, f.CostUSD, f.Attempts, f.Adopted = approvers, usd, t.Attempts, t.Adopted
	return f
}
