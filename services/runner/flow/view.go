package flow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Summary is the state as lists show it.
func (s *Intent) Summary() forge.Summary {
	sum := forge.Summary{
		Key: s.key, Title: s.intent.Title, Type: s.intent.Type, Status: s.intent.Status, Risk: s.intent.Risk,
		Source: s.intent.Source, Priority: s.intent.Priority, Run: s.run, Reason: s.reason, Plan: s.planHash,
		Open: s.open.attempts(), Idle: s.open.idle(), Usage: s.usage,
		CreatedAt: s.intent.CreatedAt, UpdatedAt: s.updated,
		Parent: s.intent.Parent, Requester: requester(&s.intent), Approver: s.approver,
	}
	sum.Children = s.children()
	sum.Goal = s.goalSummary()
	sum.Waiting, sum.Activity = s.waiting()
	if sum.Waiting == forge.WaitingPaused {
		sum.Reason = cmp.Or(s.pauses.why(), sum.Reason)
	}
	if guarded := s.guarded(); len(guarded) > 0 {
		sum.Plan = hashChanges(guarded)
	}
	sum.TaskCount = len(s.tasks)
	for _, t := range s.tasks {
		if t.stage == stageDone {
			sum.TasksDone++
		}
		if t.stage == stageDone || t.stage == stagePending {
			continue
		}
		ts := forge.TaskSummary{
			ID: t.ID, Title: t.Title, Status: t.Status, Attempt: t.implement.number, Detail: t.Failure,
			Paused: !t.ended() && s.holds(t.ID),
		}
		for _, o := range t.overlaps {
			if known := slices.ContainsFunc(ts.Overlaps, func(k forge.Overlap) bool { return k.TaskID == o.TaskID }); !known {
				ts.Overlaps = append(ts.Overlaps, o.Overlap)
			}
		}
		switch t.stage {
		case stageImplementing:
			ts.Step = t.making()
		case stageSummarizing:
			ts.Step = forge.StepSummarize
		case stageRebasing:
			ts.Step = forge.StepRebase
		case stageReviewing:
			ts.Step = t.checking()
		case stageLanding:
			ts.Step = forge.StepMerge
		case stageReserving:
			ts.Detail = "waits for precedence after a conflict"
		case stageWaiting, stageUnfunded, stageGuarded:
			sum.Reason = t.Failure
		case stagePending, stageDone, stageFailed:
		}
		sum.Tasks = append(sum.Tasks, ts)
	}
	return sum
}

// children is how far the parts are.
func (s *Intent) children() []forge.ChildSummary {
	var list []forge.ChildSummary
	for _, p := range s.parts {
		c := forge.ChildSummary{ID: p.intent.ID, Title: p.intent.Title, Status: p.status}
		if c.Status == "" && p.run > 0 {
			c.Status = forge.StatusExecuting
		}
		list = append(list, c)
	}
	return list
}

// waiting says what the intent waits for a person to do, and what goes on.
func (s *Intent) waiting() (forge.Waiting, string) {
	switch {
	case s.intent.Status.Failed():
		return forge.WaitingFailed, ""
	case s.phase == phaseAsking:
		return forge.WaitingClarification, "waits for answers"
	case s.phase == phaseApproval:
		return forge.WaitingApproval, "waits for approval"
	case len(s.guarded()) > 0:
		return forge.WaitingApproval, "waits for approval of its changes"
	case s.phase != phaseClosed && s.pauses.whole():
		return forge.WaitingPaused, "paused"
	case len(s.waitingTasks()) > 0:
		return forge.WaitingDirty, "waits for your files"
	case s.isBroke() && !s.refreshing:
		return forge.WaitingBudget, "waits for money"
	case len(s.held) > 0:
		return forge.WaitingPaused, fmt.Sprintf("%d task(s) paused", len(s.held))
	}
	return "", s.activity()
}

// activity is what goes on by itself.
func (s *Intent) activity() string {
	done := 0
	switch {
	case s.phase == phaseParts:
		for _, p := range s.parts {
			if p.status == forge.StatusDone {
				done++
			}
		}
		return fmt.Sprintf("%d of %d parts done", done, len(s.parts))
	case s.phase == phaseDepending:
		var ids []forge.IntentID
		for _, d := range s.depends {
			if d.status != forge.StatusDone {
				ids = append(ids, d.id)
			}
		}
		return "waits for " + joinIDs(ids, ", ")
	case len(s.open.commands) == 0 && !s.open.parkedUntil().IsZero():
		return "tries again at " + s.open.parkedUntil().UTC().Format(time.DateTime) + " UTC"
	case s.phase == phaseWorking && s.goalTask() != nil:
		return s.goalActivity()
	case s.phase == phaseWorking:
		for _, t := range s.tasks {
			if t.stage == stageDone {
				done++
			}
		}
		return fmt.Sprintf("%d of %d tasks done", done, len(s.tasks))
	case s.phase == phaseClosed:
		return ""
	}
	return string(s.phase)
}

// View is everything that is known of the intent.
func (s *Intent) View() forge.View {
	v := forge.View{
		Summary: s.Summary(), Intent: s.intent,
		History: slices.Clone(s.history), Observations: slices.Clone(s.observations), Audit: s.audit,
	}
	for _, t := range s.tasks {
		v.Tasks = append(v.Tasks, t.Task)
		v.Reviews = append(v.Reviews, t.reviews...)
	}
	v.Goal = s.goalView()
	for _, p := range s.parts {
		v.Children = append(v.Children, p.intent)
	}
	return v
}

// requester is who wanted an intent: a person, a system, or nobody known.
func requester(in *forge.Intent) string {
	if in.Origin.Actor != "" {
		return in.Origin.Actor
	}
	return in.Origin.System
}
