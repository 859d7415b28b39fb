package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
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
	known := before.Status != ""
	for i := range rec.Events {
		ev := &rec.Events[i]
		text, tone := describe(ev)
		if again := forge.As[*forge.Submit](ev.Message); again != nil {
			if again.Comments == nil && known {
				text, tone = "its text was edited at "+ev.Actor+"; what was taken before is worked on", Attention
			}
			known = true // two of them may be decided together
		}
		if text != "" {
			line := Line{At: ev.At, Who: who(ev), Text: term.Line(text), Tone: tone}
			if r := forge.As[*forge.Result](ev.Message); r != nil {
				line.Attempt = r.Attempt
			}
			lines = append(lines, line)
		}
	}
	if text, tone := turned(before, after); text != "" {
		if after.Status != before.Status && after.Status.Failed() && isSaid(lines, after.Reason) {
			text = fmt.Sprintf("%s; next: pfl-forge retry %s", after.Status, after.Key.Intent)
		}
		lines = append(lines, Line{At: after.UpdatedAt, Who: string(after.Key.Intent), Text: term.Line(FromNow(text, after.UpdatedAt)), Tone: tone})
	}
	return lines
}

// isSaid reports whether the last of the lines gives the reason why an intent ended: a sentence is
// not said twice, one line below the other.
func isSaid(lines []Line, reason string) bool {
	if len(lines) == 0 {
		return false
	}
	_, cause, found := strings.Cut(lines[len(lines)-1].Text, "): ")
	return found && strings.HasSuffix(term.Line(FirstLine(reason)), ": "+cause)
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

// submitted returns the line of what was asked for, or of comments on it.
func submitted(m *forge.Submit, ev *forge.Event) (string, Tone) {
	if c := m.Comments; c != nil {
		return fmt.Sprintf("comment by %s: %s", c.Account, c.Ref), Attention
	}
	return "submitted" + by(ev) + ": " + m.Intent.Title, Plain
}

// describe returns the line that shows an event, or an empty one.
func describe(ev *forge.Event) (string, Tone) {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		return submitted(m, ev)
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
		return childEnded(m), Plain
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

// childEnded returns the line for a child intent that ended; one that began has lines
// of its own.
func childEnded(c *forge.ChildChanged) string {
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

// by returns " by <person>", and through which gateway if there was one; empty
// if it is not known who.
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
