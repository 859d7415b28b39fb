package render

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// result returns the line for a worker's result, with its duration and costs;
// empty for results that are shown otherwise.
func result(r *forge.Result) (string, Tone) {
	step := StepName(r.Attempt)
	var text string
	tone := Plain
	switch out := r.Output.(type) {
	case *forge.Failure:
		return failure(step, r.Agent, out)
	case *forge.Analysis:
		text = analysis(out)
	case *forge.Implementation:
		switch {
		case out.Blocked != nil:
			text = "blocked: " + FirstLine(out.Blocked.Question)
		case out.Execution != nil:
			text, tone = execution(out)
		default:
			text = implementation(out)
		}
	case *forge.Intake:
		text = intake(out)
	case *forge.Summarization:
		text = summarization(out)
	case *forge.Judgment:
		text, tone = judgment(out)
	case *forge.Rebase:
		text, tone = rebase(out)
	case *forge.Review:
		text, tone = review(out)
	case *forge.Audit:
		text = findings(out)
	case *forge.Observed:
		text = Count(len(out.Patterns), "pattern")
	case *forge.Abstraction:
		text = Count(len(out.Skills), "skill")
	case *forge.Reflection:
		if len(out.Proposals) > 0 {
			text = Count(len(out.Proposals), "proposal")
		}
	case nil, *forge.Started, *forge.Probed, *forge.PullRequest, *forge.MergeResult: // a merge is told when its intent hears of it
	}
	if text == "" {
		return "", Plain
	}
	took := Took(r.Duration)
	if used := ConsumedOf(&r.Usage); used != "" {
		took += ", " + used
	}
	return fmt.Sprintf("%s: %s (%s)", step, text, took), tone
}

// StepName returns "implement", or "implement 2" for the second attempt.
func StepName(a forge.Attempt) string {
	if a.Number > 1 {
		return fmt.Sprintf("%s %d", a.Step, a.Number)
	}
	return string(a.Step)
}

// analysis, and the functions below it, each say the outcome of one step in a
// few words.
func analysis(a *forge.Analysis) string {
	switch {
	case len(a.Clarifications) > 0:
		return Count(len(a.Clarifications), "question")
	case a.NothingToDo != "":
		return "nothing to do: " + a.NothingToDo
	case a.Insufficient != "":
		return "not sufficient: " + a.Insufficient
	case len(a.Children) > 0:
		return Count(len(a.Children), "child intent")
	}
	if len(a.Tasks) == 0 && a.Policy != nil { // of a command that asks for nothing else
		return "the project's policy was read"
	}
	return Count(len(a.Tasks), "task")
}

func findings(a *forge.Audit) string {
	n := 0
	for i := range a.Areas {
		n += len(a.Areas[i].Findings)
	}
	return Count(n, "finding")
}

func implementation(i *forge.Implementation) string {
	switch {
	case i.Unchanged:
		return "nothing had to be changed"
	case i.NothingToDo != "":
		return "claims that nothing has to be changed"
	case i.Commits == 0:
		return "no commit"
	}
	return Count(i.Commits, "commit") + " in " + Count(len(i.Files), "file")
}

// failure returns the line for an attempt that failed. What is held without the name
// of an agent waits for the origin. That no money was reserved is none of its own.
func failure(step, agent string, f *forge.Failure) (string, Tone) {
	if f.Reason == forge.FailHeld && agent == "" {
		return step + " waits: the git origin does not answer", Plain
	}
	if f.Reason == forge.FailHeld {
		return step + " waits: the account of " + agent + " refuses calls", Plain
	}
	if f.Reason == forge.FailUnreserved {
		return step + " waits for budget: that of the project has changed", Plain
	}
	return fmt.Sprintf("%s failed (%s): %s", step, f.Reason, cause.Gist(f.Message)), Bad
}

// rebase returns the outcome of a rebase: conflicts and a failed verify before all else.
func rebase(r *forge.Rebase) (string, Tone) {
	switch {
	case len(r.Conflicts) > 0:
		return "conflicts in " + files(r.Conflicts), Bad
	case r.Verify != nil && !r.Verify.Passed:
		return verifyFailed("verify failed", r.Verify), Bad
	case verdict.Asked(r.Verify):
		return checks(r.Verify, "asked by the reviewer")
	case r.Verify != nil:
		return checks(r.Verify, verified(r.Verify, r.Tree))
	case r.Unverified:
		return "no conflict; it is verified in its merge", Plain
	}
	return "no conflict", Plain
}

// verified returns the outcome of verify commands that passed, be it not at once.
func verified(v *forge.VerifyReport, tree string) string {
	if command := verdict.Flaky(v, tree); command != "" {
		text := fmt.Sprintf("verified at the second try: %s is flaky", term.Short(command, 60))
		if slices.ContainsFunc(v.Trials, func(r forge.CheckRun) bool { return r.Name == verdict.TrialBase && !r.Passed }) {
			text += ", also without the change"
		}
		return text
	}
	return "verified"
}

// verifyFailed returns a text with the cause in the output of the verify command that failed,
// and the command.
func verifyFailed(text string, v *forge.VerifyReport) string {
	if v == nil {
		return text
	}
	command := term.Short(v.Command, 60)
	if why := cause.Line(v.Output); why != "" {
		return fmt.Sprintf("%s: %s (%s)", text, why, command)
	}
	return text + ": " + command
}

// merged returns the line for the end of a merge. Whether it is good depends on
// its outcome.
func merged(l *forge.MergeEnded) (string, Tone) {
	switch {
	case l.Failure != nil:
		return fmt.Sprintf("merge failed (%s): %s", l.Failure.Reason, cause.Gist(l.Failure.Message)), Bad
	case l.Result == nil:
		return "", Plain
	}
	switch l.Result.Outcome {
	case forge.MergeDone:
		return "merged as " + ShortCommit(l.Result.Commit), Good
	case forge.MergeConflict:
		return "conflicts with what was merged since, in " + files(l.Result.Files), Bad
	case forge.MergeVerifyFailed:
		return verifyFailed("verify failed in the merge", l.Result.Verify), Bad
	case forge.MergePatchChanged:
		return "the base branch moved, and the rebased change differs from the reviewed one: reviewed again", Plain
	case forge.MergeTried, forge.MergeRefused, forge.MergeOvertaken: // no answers to a task
	case forge.MergeProposed:
		return "continues at its pull request", Plain
	case forge.MergeEdited:
		return "someone else changed the branch of its pull request; it is not overwritten", Attention
	case forge.MergeClosed:
		return "its pull request was closed, or is to be merged elsewhere", Attention
	case forge.MergeChecksFailed:
		return "checks of the forge failed on its pull request", Bad
	case forge.MergeUnwanted:
		return "changes are asked for at its pull request", Attention
	case forge.MergeDenied:
		return "the forge refuses its pull request: " + l.Result.Refusal, Attention
	case forge.MergeOverdue:
		if p := l.Result.Pull; p != nil && len(p.Checks) > 0 {
			return "it " + l.Result.Refusal, Attention
		}
		return "its pull request has waited for a day: it " + l.Result.Refusal, Attention
	case forge.MergeDirty:
		return "your working tree is in the way: " + files(l.Result.Files), Attention
	}
	return string(l.Result.Outcome), Plain
}
