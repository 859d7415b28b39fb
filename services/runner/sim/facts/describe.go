package facts

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Describe returns an event in a few words, for the trace of a seed: what a reader needs to follow
// the decisions, and no text that a person or agent wrote. Events between machines are their ids.
func Describe(ev forge.Event) string {
	switch m := ev.Message.(type) {
	case *forge.Submit:
		if m.Comments != nil {
			return "comments " + m.Comments.Ref
		}
		return fmt.Sprintf("submit %s after %v", m.Intent.Source, m.Intent.DependsOn)
	case *forge.Result:
		return "result " + m.Attempt.String() + ": " + DescribeResult(m)
	case *forge.Approve:
		return "approve " + m.Plan
	case *forge.Answer:
		return fmt.Sprintf("answer %d", m.Index)
	case *forge.Edit:
		return "edit"
	case *forge.Retry:
		return strings.TrimSpace("retry " + m.Adopt)
	case *forge.Cancel:
		return "cancel"
	case *forge.Reject:
		return "reject"
	case *forge.RequestChanges:
		return fmt.Sprintf("ask for changes of %s %s: %s", m.Hash, m.Task, m.Words)
	case *forge.TimerFired:
		return "timer " + m.Key
	case *forge.Pause:
		return fmt.Sprintf("pause %d %s", m.Number, m.Task)
	case *forge.Resume:
		return fmt.Sprintf("resume %d %s", m.Number, m.Task)
	case *forge.ChildChanged:
		return fmt.Sprintf("part %s: run %d %s, end %d", m.Intent, m.Run, m.Status, m.Number)
	default:
		return ev.ID
	}
}

// DescribeResult returns a result in a few words, for the trace. Outputs of steps that the traces
// of failing seeds have not needed yet are "nothing".
func DescribeResult(r *forge.Result) string {
	switch out := r.Output.(type) {
	case *forge.Failure:
		return "failure " + string(out.Reason)
	case *forge.Started:
		return "started"
	case *forge.Analysis:
		return fmt.Sprintf("%d tasks, %d children, %d questions, risk %s, after %v %s",
			len(out.Tasks), len(out.Children), len(out.Clarifications), out.Risk, out.DependsOn, out.Insufficient)
	case *forge.Implementation:
		return fmt.Sprintf("%d commits, %s on %s, changing %v", out.Commits, out.Head, out.Base, out.Files)
	case *forge.Rebase:
		return fmt.Sprintf("%s on %s, conflicts %v", out.Head, out.Base, out.Conflicts)
	case *forge.Review:
		return string(out.Verdict) + " " + out.Head
	case *forge.MergeResult:
		return string(out.Outcome) + " " + out.Commit
	case *forge.Reflection:
		return fmt.Sprintf("%d proposals, read %v", len(out.Proposals), out.Read)
	default:
		return "nothing"
	}
}
