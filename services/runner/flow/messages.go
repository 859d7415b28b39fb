package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// handleRequest routes the request of a person.
func (s person) handleRequest(ev *forge.Event) (forge.Decision, error) {
	switch m := ev.Message.(type) {
	case *forge.Edit:
		return s.edit(m, ev.Actor)
	case *forge.Approve:
		return s.approve(m, ev.Actor, ev.ID)
	case *forge.RequestChanges:
		return s.requestChanges(m, ev.Actor)
	case *forge.Reject:
		return s.stop(control.Reject, forge.StatusRejected, m.Reason)
	case *forge.Answer:
		return s.answer(m, ev.Actor, ev.ID)
	case *forge.Retry:
		return s.retry(m, approval.WordsOf(ev, s.Intent.Parent))
	case *forge.Pause:
		return s.pause(m)
	case *forge.Resume:
		return s.resume(m)
	case *forge.Cancel:
		if m.Task != "" {
			return s.cancelTask(m)
		}
		return s.stop(control.Cancel, forge.StatusCancelled, m.Reason)
	default:
		return rule.Refuse("the event has no message that an intent takes")
	}
}

// handleMessage routes a message of another machine.
func (s answers) handleMessage(ev *forge.Event) (forge.Decision, error) {
	switch m := ev.Message.(type) {
	case *forge.RunAdmitted:
		return s.admitted(m)
	case *forge.DependencyEnded:
		return s.dependencyEnded(m)
	case *forge.FilesLocked:
		return s.locked(m)
	case *forge.MergeEnded:
		return s.merged(m)
	case *forge.BudgetReserved:
		return s.budgeted(m)
	case *forge.ChildChanged:
		return s.childChanged(m)
	case *forge.RunReflected:
		return s.reflected(m)
	case *forge.OverlapChanged:
		return s.overlapped(m)
	case *forge.ObstaclesChanged:
		return access(s).changed(m)
	default:
		return rule.Refuse("the event has no message that an intent takes")
	}
}

// The keys of messages to the project. A newer message takes the place of one with the same key.
const (
	admitKey   = "admit"
	plannedKey = "planned"
	endKey     = "end"
)

// taskKey and childKey return keys of the outbox: one request of a task, or
// report about a child, at a time.
func taskKey(t *task.Task) string { return "task/" + string(t.ID) }

func childKey(id forge.IntentID) string { return "child/" + string(id) }

// raiseKey returns the key of a retry that tells a child under way of more budget.
func raiseKey(id forge.IntentID) string { return "raise/" + string(id) }

// sendToProject sends a message to the project. With reply, an answer is waited for.
func (s *Intent) sendToProject(key string, number int, reply bool, ev forge.Event) {
	s.Dispatch.Outbox.SendToProject(&s.eff, outbox.Project{From: s.key, Key: key, Number: number, Reply: reply, Event: ev})
}

// askAdmission starts a run by asking the project to admit the intent.
func (s course) askAdmission() {
	s.Run++
	s.Phase = control.Admission
	s.Reason = ""
	s.Escalate = false
	s.History.Started = s.now
	s.Dispatch.Outbox.Answered(endKey)
	in := &s.Intent
	s.sendToProject(admitKey, s.Run, true, forge.Event{Message: &forge.AdmitRun{
		Run: s.Run, Title: in.Title, About: plan.About(in, s.Tasks.Files(maxPlannedFiles)), Type: in.Type, Parent: in.Parent,
		Source: in.Source, Generation: in.Generation, Goal: in.IsGoal(), Requesters: in.Requesters,
	}})
}

// request sends a request of a task to the project, in place of the one before.
func (s *Intent) request(t *task.Task, reply bool, ev forge.Event) {
	s.sendToProject(taskKey(t), t.Requests, reply, ev)
}

// mergeOf asks to merge exactly what was verified and approved.
func (s *Intent) mergeOf(t *task.Task) forge.Event {
	c := t.Candidate
	return forge.Event{Message: &forge.QueueMerge{
		Run: s.Run, Task: t.ID, Number: t.Requests, Base: c.Base, Head: c.Head, Tree: c.Tree, PatchID: c.PatchID, Files: c.Files,
		Title: s.Tasks.CommitTitle(&s.Intent, t), Approver: strings.Join(consent{s}.names(t), ", "), Statements: s.statements(t),
		Claims: s.Plan.Gate.Claims(&s.Intent, &plan.Change{
			Run: s.Run, Task: t.ID, Approved: t.Cleared.Of(c), Reviews: len(task.Pair{Task: t}.Last()), Policy: t.Policy,
		}),
		Scripted: s.Intent.Scripted() && t.Adopted == nil, Checks: t.Checks, Parallel: s.Policy.Policy.MergeParallel, Batch: s.Policy.Policy.MergeBatch,
		Unverified: c.Unverified, MadeOn: c.MadeOn,
		Pull: s.Policy.Pull, Facts: task.Pulled{Task: t}.Facts(&s.Intent, s.Policy.Pull, consent{s}.names(t), s.History.Usage.CostUSD),
	}}
}

// statements returns the signed statements that a task's candidate was
// verified, and reviewed or judged.
func (s *Intent) statements(t *task.Task) []forge.Envelope {
	list := []forge.Envelope{t.Candidate.Statement}
	if s.Goal.Started {
		list = append(list, s.Goal.Statement())
	} else {
		for _, rv := range (task.Pair{Task: t}).Last() {
			list = append(list, rv.Statement)
		}
	}
	return slices.DeleteFunc(list, func(statement forge.Envelope) bool { return statement == "" })
}

// sendOverlap tells another intent that a task of it does not merge with one of this.
func (s *Intent) sendOverlap(e task.SendOverlap) {
	key := fmt.Sprintf("overlap/%s/%s", e.Other.TaskID, e.To)
	s.Dispatch.Outbox.Send(&s.eff, outbox.Message{Key: key, Event: forge.Event{
		ID: fmt.Sprintf("%s/%d", key, e.Number), To: forge.Key{Project: s.key.Project, Intent: e.To.Intent()},
		Actor: string(s.key.Intent), Message: &forge.OverlapChanged{TaskID: e.To, Other: e.Other, Number: e.Number},
	}})
}

// sendToChild sends an event to a child, until the project tells of the run that it leads to.
func (s *Intent) sendToChild(c *plan.Child, ev forge.Event) {
	key := childKey(c.Intent.ID)
	ev.ID = fmt.Sprintf("%s/%s/%d", s.key.Intent, key, s.Run)
	ev.To = forge.Key{Project: s.key.Project, Intent: c.Intent.ID}
	ev.Actor = string(s.key.Intent)
	s.Dispatch.Outbox.Send(&s.eff, outbox.Message{Key: key, Reply: true, Event: ev})
}

// raiseChildren tells the project of a budget that was raised, and has the
// children that wait for it go on.
func (s *Intent) raiseChildren() {
	s.commands(s.Dispatch.Commit)
	for _, c := range s.Plan.Children {
		if c.Status != "" {
			continue
		}
		key := raiseKey(c.Intent.ID)
		s.Dispatch.Outbox.Send(&s.eff, outbox.Message{Key: key, Event: forge.Event{
			ID: fmt.Sprintf("%s/%s/%d", s.key.Intent, key, s.Dispatch.Messages), To: forge.Key{Project: s.key.Project, Intent: c.Intent.ID},
			Actor: string(s.key.Intent), Message: &forge.Retry{BudgetUSD: budget.Own(&s.Intent, s.Policy.Budget, s.Foreign)},
		}})
	}
}

// locked takes the project's answer to a task's request for a file lock.
func (s answers) locked(r *forge.FilesLocked) (forge.Decision, error) {
	t := s.Tasks.Find(r.Task)
	if t == nil || t.Stage != task.Locking || r.Number != t.Requests {
		return rule.Ignore("task %s does not wait for file locks", r.Task)
	}
	s.Dispatch.Outbox.Answered(taskKey(t))
	s.tasks(func(x *task.Turn) { t.AnsweredLock(x, r.Granted) })
	return forge.Applied, nil
}

// merged takes the project's answer to a task's request to merge. That a merge
// was made counts also when the task has given it up.
func (s answers) merged(m *forge.MergeEnded) (forge.Decision, error) {
	t := s.Tasks.Find(m.Task)
	switch {
	case t == nil || m.Number > t.Requests || t.Stage == task.Done:
		return rule.Ignore("task %s does not wait for merge %d", m.Task, m.Number)
	case (task.Pulled{Task: t}).Waits(m): // what was told before, and comes late, is out of date
		if m.Result != nil && task.GoesOn(m.Result) {
			s.tasks(func(x *task.Turn) { t.AnsweredMerge(x, m.Result) })
			return forge.Applied, nil
		}
	case m.Result != nil && m.Result.Outcome == forge.MergeDone:
		s.tasks(func(x *task.Turn) { t.MergedLate(x, m.Result) })
		return forge.Applied, nil
	default:
		return rule.Ignore("task %s does not wait for merge %d", m.Task, m.Number)
	}
	s.Dispatch.Outbox.Answered(taskKey(t))
	if m.Failure != nil {
		s.History.Merged(s.now, t.ID, t.Merges, string(m.Failure.Reason), m.Executor)
		s.tasks(func(x *task.Turn) { t.CannotMerge(x, "the change could not be merged: "+m.Failure.Message) })
		return forge.Applied, nil
	}
	s.History.Merged(s.now, t.ID, t.Merges, string(m.Result.Outcome), m.Executor)
	s.tasks(func(x *task.Turn) { t.AnsweredMerge(x, m.Result) })
	return forge.Applied, nil
}

// budgeted takes the project's answer to a request for budget.
func (s answers) budgeted(f *forge.BudgetReserved) (forge.Decision, error) {
	known := false
	s.commands(func(x *dispatch.Turn) { known = s.Dispatch.Answered(x, f) })
	if !known {
		return rule.Ignore("attempt %s does not wait for budget", f.Attempt)
	}
	return forge.Applied, nil
}

// overlapped takes an overlap that a task of another intent has found.
func (s answers) overlapped(f *forge.OverlapChanged) (decision forge.Decision, err error) {
	s.tasks(func(x *task.Turn) { decision, err = s.Tasks.Overlapped(x, f) })
	return decision, err
}

// reflected takes the results of a reflection on a run.
func (s answers) reflected(r *forge.RunReflected) (forge.Decision, error) {
	before := s.History.Usage.CostUSD
	decision, err := s.History.Reflected(s.now, s.key.Intent, r)
	if s.History.Usage.CostUSD > before {
		s.commands(s.Dispatch.Commit)
	}
	return decision, err
}
