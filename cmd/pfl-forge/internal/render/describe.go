package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Tone says how a line is meant.
type Tone int

// The tones.
const (
	Plain     Tone = iota
	Good           // something succeeded
	Bad            // something failed
	Attention      // a person has to do something
)

// Line is one event or outcome, for a person. Its text is safe to print and one
// line.
type Line struct {
	// At is the time of the event.
	At time.Time
	// Who is the id of a task or of an intent.
	Who string
	// Attempt is the attempt that the line is about; zero for other lines.
	Attempt forge.Attempt
	Text    string
	Tone    Tone
}

// Lines returns the lines that show a record of an intent's journal, given the
// intent before and after it: one for each event that concerns people, and one
// if the intent ended or began to wait.
func Lines(before, after *forge.Summary, rec *forge.Record) []Line {
	var lines []Line
	for i := range rec.Events {
		ev := &rec.Events[i]
		text, tone := describe(ev)
		if text != "" {
			line := Line{At: ev.At, Who: who(ev), Text: term.Line(text), Tone: tone}
			if r := forge.As[*forge.Result](ev.Message); r != nil {
				line.Attempt = r.Attempt
			}
			lines = append(lines, line)
		}
	}
	if text, tone := turned(before, after); text != "" {
		lines = append(lines, Line{At: after.UpdatedAt, Who: string(after.Key.Intent), Text: term.Line(FromNow(text, after.UpdatedAt)), Tone: tone})
	}
	return lines
}

// who returns the id of the task that an event is about, or else that of the
// intent.
func who(ev *forge.Event) string {
	var task forge.TaskID
	switch m := ev.Message.(type) {
	case *forge.Result:
		task = m.Attempt.Task
	case *forge.MergeEnded:
		task = m.Task
	case *forge.FilesLocked:
		task = m.Task
	case *forge.Pause:
		task = m.Task
	case *forge.Resume:
		task = m.Task
	case *forge.OverlapChanged:
		task = m.TaskID
	case *forge.Cancel:
		task = m.Task
	case *forge.RequestChanges:
		task = m.Task
	default:
	}
	return cmp.Or(string(task), string(ev.To.Intent))
}

// turned returns the line for an intent that ended, or began to wait, by a
// record; empty if it did neither. FromNow is still to be applied to it.
func turned(before, after *forge.Summary) (string, Tone) {
	switch {
	case after.Status != before.Status && after.Status == forge.StatusDone:
		return "done" + inParentheses(ConsumedOf(&after.Usage)), Good
	case after.Status != before.Status && after.Status.Failed():
		return fmt.Sprintf("%s: %s", after.Status, FirstLine(after.Reason)), Bad
	case after.Waiting != before.Waiting && after.Waiting != "" && after.Waiting != forge.WaitingFailed:
		return Doing(after), Attention
	case after.Activity != before.Activity && strings.HasPrefix(after.Activity, "waits for"):
		return after.Activity, Plain
	}
	return "", Plain
}

// describe returns the line that shows an event, or an empty one.
func describe(ev *forge.Event) (string, Tone) {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		return "submitted" + by(ev) + ": " + m.Intent.Title, Plain
	case *forge.Edit:
		return "edited" + by(ev), Plain
	case *forge.Approve:
		return "approved" + by(ev), Plain
	case *forge.RequestChanges:
		return "asked to be changed" + by(ev) + because(m.Words), Attention
	case *forge.Reject:
		return "rejected" + by(ev) + because(m.Reason), Plain
	case *forge.Answer:
		return fmt.Sprintf("question %d answered%s: %s", m.Index+1, by(ev), m.Answer), Plain
	case *forge.Retry:
		return retried(m) + by(ev) + because(m.Instructions), Plain
	case *forge.Cancel:
		return "cancelled" + by(ev) + because(m.Reason), Plain
	case *forge.Pause:
		return "paused" + by(ev) + because(m.Reason), Attention
	case *forge.Resume:
		return "resumed" + by(ev), Plain
	case *forge.ChildChanged:
		return part(m), Plain
	case *forge.OverlapChanged:
		return overlapText(m), Plain
	case *forge.RunReflected:
		return reflected(m)
	case *forge.Result:
		return result(m)
	case *forge.MergeEnded:
		return merged(m)
	case *forge.DependencyEnded:
		return dependency(m)
	case *forge.FilesLocked:
		if m.Granted {
			return "first in the queue now, after a conflict", Plain
		}
	default: // what machines tell each other is not for people
	}
	return "", Plain
}

// retried says what a person had done once more, or had go on.
func retried(m *forge.Retry) string {
	if m.Adopt == "" {
		return "retried"
	}
	return "commit " + ShortCommit(m.Adopt) + " on the branch of its pull request adopted"
}

// result returns the line for a worker's result, with its duration and costs;
// empty for results that are shown otherwise.
func result(r *forge.Result) (string, Tone) {
	step := StepName(r.Attempt)
	var text string
	tone := Plain
	switch out := r.Output.(type) {
	case *forge.Failure:
		return failure(step, out)
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
		return "says that nothing has to be changed"
	case i.Commits == 0:
		return "no commit"
	}
	return Count(i.Commits, "commit") + " in " + Count(len(i.Files), "file")
}

// failure returns the line for an attempt that failed. That no money was reserved is none of its own.
func failure(step string, f *forge.Failure) (string, Tone) {
	if f.Reason == forge.FailHeld {
		return step + " waits: the account of its agent refuses calls", Plain
	}
	if f.Reason == forge.FailUnreserved {
		return step + " waits for money: the project has another budget now", Plain
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
		text := fmt.Sprintf("verified at the second try: %s fails now and then", term.Short(command, 60))
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
		return "the base branch moved and the change with it: it is reviewed again", Plain
	case forge.MergeTried, forge.MergeRefused, forge.MergeOvertaken: // no answers to a task
	case forge.MergeProposed:
		return "goes on at its pull request", Plain
	case forge.MergeEdited:
		return "another one has changed the branch of its pull request, which is not overwritten", Attention
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

// reflected returns the line for a reflection on a run; empty if it proposed
// nothing.
func reflected(r *forge.RunReflected) (string, Tone) {
	if o := r.Step.Outcome; o != "" && o != "ok" {
		text := "reflection failed (" + o + ")"
		if why, ok := ReasonOf(o); ok {
			text += ": " + why.Meaning + "; fix that, then run pfl-forge reflect"
		}
		return text, Bad
	}
	var ids []string
	for _, p := range r.Proposed {
		ids = append(ids, string(p.ID))
	}
	if len(ids) == 0 {
		return "", Plain
	}
	return "reflection proposed " + files(ids), Plain
}

// part returns the line for a child intent that ended; one that began has lines
// of its own.
func part(c *forge.ChildChanged) string {
	if !c.Status.Ended() {
		return ""
	}
	return fmt.Sprintf("child intent %s is %s", c.Intent, c.Status)
}

// overlapText returns the line for tasks that conflict; empty when they do not
// any more.
func overlapText(f *forge.OverlapChanged) string {
	if len(f.Other.Files) == 0 {
		return ""
	}
	return fmt.Sprintf("conflicts with %s: %s", f.Other.TaskID, files(f.Other.Files))
}

// dependency returns the line for an intent that this one waited for.
func dependency(d *forge.DependencyEnded) (string, Tone) {
	switch {
	case len(d.Cycle) > 0:
		return fmt.Sprintf("%s depends on this intent too", d.Intent), Bad
	case d.Status == "":
		return fmt.Sprintf("intent %s, which it depends on, does not exist", d.Intent), Bad
	}
	return fmt.Sprintf("%s is %s", d.Intent, d.Status), Plain
}

// ShortCommit returns the first digits of a commit's name.
func ShortCommit(commit string) string { return commit[:min(10, len(commit))] }

// files returns the first three of a list, and how many more there are.
func files(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// by returns " by <person>", and through which gateway if there was one; empty if it is not known who.
func by(ev *forge.Event) string {
	switch {
	case ev.Actor == "":
		return ""
	case ev.Account != "":
		return " by " + ev.Actor + " via " + ev.Via
	}
	return " by " + ev.Actor
}

// because returns a reason behind a colon; empty for none.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// inParentheses returns a text behind a space; empty for an empty one.
func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
