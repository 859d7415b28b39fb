package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// askLane makes a task's next request to the lane. It takes the place of the
// one before.
func (s *Intent) askLane(t *task, reply bool, ev forge.Event) {
	s.tellLane("task/"+string(t.ID), reply, ev)
}

// land asks for the integration of exactly what was verified and reviewed.
func (s *Intent) land(t *task) {
	t.landings++
	if t.landings > maxLandings {
		s.failTask(t, fmt.Sprintf("the base branch moved %d times while the change was being landed", maxLandings))
		return
	}
	t.asks++
	t.stage, t.Failure = stageLanding, ""
	c := t.candidate
	s.askLane(t, true, forge.Event{Message: &forge.QueueMerge{
		Run: s.run, Task: t.ID, Number: t.asks, Base: c.Base, Head: c.Head, Tree: c.Tree,
		PatchID: c.PatchID, Files: c.Files, Title: t.Title,
	}})
}

// withdraw takes back what a task asked of the lane and gives up its precedence.
func (s *Intent) withdraw(t *task) {
	if t.asks > 0 {
		s.askLane(t, false, forge.Event{Message: &forge.WithdrawRequests{Run: s.run, Task: t.ID, Number: t.asks}})
	}
}

// conflict asks for precedence on the files, so that the task loses to its
// siblings only once.
func (s *Intent) conflict(t *task, conflicts, files []string) {
	t.asks++
	t.stage = stageReserving
	t.feedback = "The change conflicted with what landed meanwhile in: " + strings.Join(conflicts, ", ") +
		". Make it again, on top of the present base branch."
	all := slices.Clone(conflicts)
	for _, f := range files {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	s.askLane(t, true, forge.Event{Message: &forge.LockFiles{Run: s.run, Task: t.ID, Number: t.asks, Conflicts: conflicts, Files: all}})
}

// reserved implements once more from a fresh checkout, or gives up: then
// somebody outside changes the same files.
func (s *Intent) reserved(r *forge.FilesLocked) (forge.Decision, error) {
	t := s.task(r.Task)
	if t == nil || t.stage != stageReserving || r.Number != t.asks {
		return ignore("task %s does not wait for precedence", r.Task)
	}
	s.open.closeNote("task/" + string(t.ID))
	if !r.Granted {
		s.escalate = true
		s.adjust(ruleEscalate, t.ID, "%s", firstLine(t.feedback))
		s.failTask(t, "conflicted again although no other task could get in between: somebody else changes the same files. "+
			"Retry when they have finished")
		return forge.Applied, nil
	}
	s.adjust(ruleReimplement, t.ID, "%s", firstLine(t.feedback))
	t.fresh = true
	s.start(t)
	return forge.Applied, nil
}

// landed takes the lane's answer to a landing.
func (s *Intent) landed(l *forge.MergeEnded) (forge.Decision, error) {
	t := s.task(l.Task)
	switch {
	case t == nil || l.Number > t.asks || t.stage == stageDone:
		return ignore("task %s does not wait for landing %d", l.Task, l.Number)
	case t.stage == stageLanding && l.Number == t.asks:
	case l.Result != nil && l.Result.Outcome == forge.MergeDone:
		s.landedLate(t, l.Result)
		return forge.Applied, nil
	default:
		return ignore("task %s does not wait for landing %d", l.Task, l.Number)
	}
	s.open.closeNote("task/" + string(t.ID))
	step := forge.StepRecord{Step: forge.StepMerge, TaskID: t.ID, Attempt: t.landings, At: s.now}
	if l.Failure != nil {
		step.Outcome = string(l.Failure.Reason)
		s.steps = append(s.steps, step)
		s.failTask(t, "the change could not be integrated: "+l.Failure.Message)
		return forge.Applied, nil
	}
	step.Outcome = string(l.Result.Outcome)
	s.steps = append(s.steps, step)
	s.settleLanding(t, l.Result)
	return forge.Applied, nil
}

// landedLate takes note of a commit that landed although the landing had been
// given up: it is on the base branch, so the task is done.
func (s *Intent) landedLate(t *task, r *forge.MergeResult) {
	s.adjust(ruleLandedLate, t.ID, "%s", r.Commit)
	s.withdrawTask(t)
	t.Base, t.Head, t.Commit = r.Parent, r.Commit, r.Commit
	s.endTask(t, forge.TaskDone, "")
	switch {
	case s.phase == phaseWorking:
		s.work()
	case s.intent.Status.Failed():
		if status := s.status(); status != s.intent.Status {
			s.intent.Status = status
			s.endRun()
			s.corrected()
		}
	}
}

func (s *Intent) settleLanding(t *task, r *forge.MergeResult) {
	switch r.Outcome {
	case forge.MergeDone:
		t.Base, t.Head, t.Commit = r.Parent, r.Commit, r.Commit
		s.endTask(t, forge.TaskDone, "")
		s.work()
	case forge.MergeConflict:
		s.conflict(t, r.Files, t.candidate.Files)
	case forge.MergeVerifyFailed:
		s.rework(t, ruleVerifyFailed, verifyFeedback(r.Verify))
	case forge.MergePatchChanged:
		s.adjust(ruleReviewAgain, t.ID, "the rebased change is not the one that was reviewed")
		t.candidate = r.Candidate
		t.Base, t.Head = r.Candidate.Base, r.Candidate.Head
		s.startReview(t)
	case forge.MergeDirty:
		t.stage = stageWaiting
		t.Failure = "your working tree is in the way: " + strings.Join(r.Files, ", ") +
			fmt.Sprintf(". Commit, stash or finish that, then: pfl-forge retry %s", s.key.Intent)
		s.adjust(ruleDirty, t.ID, "%s", strings.Join(r.Files, ", "))
	default:
		s.failTask(t, fmt.Sprintf("the integration ended in %q, which this version does not know", r.Outcome))
	}
}

// waitingTasks lists the tasks that wait for a person's files.
func (s *Intent) waitingTasks() []*task {
	var list []*task
	for _, t := range s.tasks {
		if t.stage == stageWaiting {
			list = append(list, t)
		}
	}
	return list
}
