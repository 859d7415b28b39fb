package flow

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

func (s *Intent) submit(ev forge.Event) (forge.Decision, error) {
	in := forge.As[*forge.Submit](ev.Message).Intent
	if in.CreatedAt.IsZero() {
		in.CreatedAt = ev.At
	}
	in.Project, in.ID = s.key.Project, s.key.Intent
	in.Status = forge.StatusProposed
	if e := in.Validate(); e != nil {
		return forge.Refused, e
	}
	if s.phase != phaseNone {
		if sameOrigin(s.intent.Origin, in.Origin) {
			return ignore("the intent is known already")
		}
		return forge.Refused, &forge.FieldError{Field: "id", Reason: "is taken by another intent; choose another one"}
	}
	s.intent, s.declared = in, in.Risk
	s.vouched = forge.As[*forge.Submit](ev.Message).Preapproved
	s.foreign = in.Source == forge.SourceSystem
	s.step = firstStep(&in)
	s.enter()
	return forge.Applied, nil
}

// asked takes what somebody wants of an intent that exists.
func (s *Intent) asked(ev *forge.Event) (forge.Decision, error) {
	switch m := ev.Message.(type) {
	case *forge.Edit:
		return s.edit(m)
	case *forge.Approve:
		return s.approve(m, ev.Actor)
	case *forge.Reject:
		return s.reject(m)
	case *forge.Answer:
		return s.answer(m)
	case *forge.Retry:
		return s.retry(m)
	case *forge.Pause:
		return s.pause(m)
	case *forge.Resume:
		return s.resume(m)
	default:
		return s.cancel(forge.As[*forge.Cancel](ev.Message))
	}
}

// sameOrigin reports whether two submissions are the same event of the same
// publisher.
func sameOrigin(a, b forge.Origin) bool {
	return a.EventID != "" && a.System == b.System && a.EventID == b.EventID
}

// enter starts a run by asking the lane to admit the intent.
func (s *Intent) enter() {
	s.run++
	s.phase = phaseEntering
	s.reason = ""
	s.escalate = false
	s.runStarted = s.now
	s.open.closeNote("end")
	s.tellLane("enter", true, forge.Event{Message: &forge.AdmitRun{
		Run: s.run, Title: s.intent.Title, Type: s.intent.Type, Parent: s.intent.Parent, Source: s.intent.Source, Generation: s.intent.Generation,
		Goal: s.intent.IsGoal(),
	}})
}

func (s *Intent) edit(e *forge.Edit) (forge.Decision, error) {
	if s.intent.Status != forge.StatusProposed || s.phase == phaseClosed {
		return refuse("the intent is %s; it can be edited only while it is proposed", s.intent.Status)
	}
	if e.Body != nil && slices.ContainsFunc(s.tasks, func(t *task) bool { return t.Attempts > 0 }) {
		return refuse("work on the intent has begun; make a new intent for another text")
	}
	in := s.intent
	declared := s.declared
	if e.Title != nil {
		in.Title = *e.Title
	}
	if e.Body != nil {
		in.Body = *e.Body
	}
	if e.Type != nil {
		in.Type = *e.Type
	}
	if e.Risk != nil {
		in.Risk, declared = *e.Risk, *e.Risk
	}
	if err := in.Validate(); err != nil {
		return forge.Refused, err
	}
	body := in.Body != s.intent.Body && s.phase != phaseAsking
	s.intent, s.declared = in, declared
	s.intent.Risk = forge.MaxRisk(s.declared, s.judged)
	if body {
		// The plan is of another text than the one that is to be done.
		s.tasks, s.parts, s.planHash, s.approved = nil, nil, "", false
		s.turnTo(firstStep(&s.intent))
	}
	switch {
	case body && s.phase != phaseEntering:
		s.withdrawAttempts()
		s.startStep()
	case s.phase == phaseApproval:
		s.gate()
	}
	return forge.Applied, nil
}

func (s *Intent) approve(a *forge.Approve, by string) (forge.Decision, error) {
	guarded := s.guarded()
	waits := s.phase == phaseApproval || len(guarded) > 0
	switch {
	case waits && len(s.policy.Approvers) > 0 && !slices.Contains(s.policy.Approvers, by):
		return refuse("%q may not approve; those who may are: %s (policy.approvers; if that has changed: pfl-forge retry %s)",
			by, strings.Join(s.policy.Approvers, ", "), s.key.Intent)
	case len(guarded) > 0 && a.Plan != "" && a.Plan != hashChanges(guarded):
		return refuse("the changes are %s now, not %s; look at them with `pfl-forge show %s` and approve again", hashChanges(guarded), a.Plan, s.key.Intent)
	case len(guarded) > 0:
		s.approver = by
		s.adjust(ruleApproved, "", "changes %s by %q", hashChanges(guarded), by)
		for _, t := range guarded {
			t.cleared = t.candidate.PatchID
			s.land(t)
		}
		return forge.Applied, nil
	case s.phase == phaseApproval && a.Plan != "" && a.Plan != s.planHash:
		return refuse("the plan is %s now, not %s; look at it with `pfl-forge show %s` and approve again", s.planHash, a.Plan, s.key.Intent)
	case s.phase == phaseApproval:
		s.approved, s.approver = true, by
		s.reason = ""
		s.adjust(ruleApproved, "", "plan %s by %q", s.planHash, by)
		s.gate()
		return forge.Applied, nil
	case s.approved:
		return ignore("the intent is approved already")
	case s.intent.Status == forge.StatusProposed && s.phase != phaseClosed:
		return refuse("there is no plan to approve yet; the intent is %s", s.phase)
	}
	return refuse("the intent is %s and does not wait for approval", s.intent.Status)
}

func (s *Intent) answer(a *forge.Answer) (forge.Decision, error) {
	if a.Index < 0 || a.Index >= len(s.intent.Clarifications) {
		return refuse("question %d does not exist; the intent has %d", a.Index+1, len(s.intent.Clarifications))
	}
	c := &s.intent.Clarifications[a.Index]
	switch {
	case a.Question != "" && a.Question != c.Question:
		return refuse("question %d is another one by now: %q", a.Index+1, c.Question)
	case c.Answer != nil && *c.Answer == a.Answer:
		return ignore("question %d has that answer already", a.Index+1)
	case c.Answer != nil:
		return refuse("question %d was answered already with %q", a.Index+1, *c.Answer)
	case s.phase != phaseAsking:
		return refuse("the intent is %s and does not wait for an answer", s.intent.Status)
	case strings.TrimSpace(a.Answer) == "":
		return refuse("the answer is empty")
	}
	// A fresh slice: views of the state before may still be read.
	s.intent.Clarifications = append([]forge.Clarification(nil), s.intent.Clarifications...)
	s.intent.Clarifications[a.Index].Answer = &a.Answer
	if c.Param != "" {
		with := map[string]string{c.Param: a.Answer}
		for k, v := range s.intent.With {
			if k != c.Param {
				with[k] = v
			}
		}
		s.intent.With = with
	}
	if !s.intent.NeedsClarification() {
		s.reason = ""
		s.startStep()
	}
	return forge.Applied, nil
}

func (s *Intent) reject(r *forge.Reject) (forge.Decision, error) {
	if s.intent.Status == forge.StatusRejected {
		return ignore("the intent is rejected already")
	}
	if s.intent.Status.Ended() && !s.intent.Status.Failed() {
		return refuse("the intent is %s already", s.intent.Status)
	}
	if s.phase != phaseApproval && s.phase != phaseAsking && len(s.guarded()) == 0 && !s.intent.Status.Failed() {
		return refuse("the intent is %s and does not wait for a person; use cancel to stop it", s.intent.Status)
	}
	s.stop(forge.StatusRejected, r.Reason)
	return forge.Applied, nil
}

func (s *Intent) cancel(c *forge.Cancel) (forge.Decision, error) {
	if c.Task != "" {
		return s.cancelTask(c)
	}
	switch s.intent.Status {
	case forge.StatusCancelled:
		return ignore("the intent is cancelled already")
	case forge.StatusDone, forge.StatusRejected:
		return refuse("the intent is %s already", s.intent.Status)
	default:
		s.stop(forge.StatusCancelled, c.Reason)
		return forge.Applied, nil
	}
}

// stop ends the intent because a person says so. What landed stays.
func (s *Intent) stop(status forge.Status, reason string) {
	s.withdrawAttempts()
	for _, t := range s.tasks {
		if !t.ended() {
			s.endTask(t, forge.TaskFailed, string(status))
		}
	}
	s.reason = reason
	s.intent.Status = status
	if s.phase == phaseClosed {
		s.endRun()
		s.corrected()
		return
	}
	s.close(false)
}

// cancelTask gives up one task because a person says so.
func (s *Intent) cancelTask(c *forge.Cancel) (forge.Decision, error) {
	t := s.task(c.Task)
	switch {
	case t == nil:
		return refuse("the intent has no task %q", c.Task)
	case s.phase != phaseWorking:
		return refuse("the intent is %s; a task can be cancelled while tasks are under way", s.intent.Status)
	case t.ended():
		return refuse("task %s is %s already", t.ID, t.Status)
	}
	s.withdrawTask(t)
	why := "cancelled by a person"
	if c.Reason != "" {
		why += ": " + c.Reason
	}
	s.failTask(t, why)
	return forge.Applied, nil
}

// withdrawTask tells workers that nobody waits for a task any more.
func (s *Intent) withdrawTask(t *task) {
	for _, a := range s.open.attempts() {
		if a.Task == t.ID {
			s.withdrawAttempt(a)
		}
	}
	for _, step := range forge.Steps() {
		s.open.cancelTimer(parkKey(t.ID, step))
	}
	of := func(a forge.Attempt) bool { return a.Task == t.ID }
	s.dropHeld(of)
	s.dropUnfunded(of)
	s.settle()
	s.fund()
	s.open.closeNote("task/" + string(t.ID))
}

// withdrawAttempt tells a worker that nobody waits for it any more.
func (s *Intent) withdrawAttempt(a forge.Attempt) {
	s.eff.Cancels = append(s.eff.Cancels, a)
	s.owe(a)
	s.open.closeAttempt(a)
	s.open.cancelTimer(claimKey(a))
}

// withdrawAttempts tells workers that nobody waits for them any more.
func (s *Intent) withdrawAttempts() {
	s.eff.Cancels = append(s.eff.Cancels, s.open.attempts()...)
	s.owe(s.open.attempts()...)
	s.open.commands, s.open.timers = nil, nil
	s.refreshing = false
	s.dropHeld(func(forge.Attempt) bool { return true })
	s.dropUnfunded(func(forge.Attempt) bool { return true })
	s.settle()
}

func (s *Intent) retry(r *forge.Retry) (forge.Decision, error) {
	if r.BudgetUSD < 0 || r.BudgetUSD != r.BudgetUSD {
		return forge.Refused, &forge.FieldError{Field: "budget_usd", Reason: "must be a positive amount"}
	}
	if !s.intent.Status.Failed() {
		return s.retryWaiting(r)
	}
	s.heed(r)
	for _, t := range s.tasks {
		if t.Status == forge.TaskFailed {
			t.reset(r.Instructions, s.intent.Recipe != "" || s.escalate)
		}
	}
	s.steps, s.adjustments = nil, nil
	s.analyze.worked()
	s.pauses.person = false
	s.intent.Status = forge.StatusProposed
	s.enter()
	return forge.Applied, nil
}

// heed takes over what a person says with a retry.
func (s *Intent) heed(r *forge.Retry) {
	if r.BudgetUSD > 0 {
		s.intent.BudgetUSD, s.foreign = r.BudgetUSD, false
	}
	if r.Instructions != "" {
		s.instructions = r.Instructions
	}
}

// retryWaiting goes on with what waits for a person, whom a change of the policy may
// have answered. What the person says with it counts also while that is being read.
func (s *Intent) retryWaiting(r *forge.Retry) (forge.Decision, error) {
	waiting := s.waitingTasks()
	stale := s.isBroke() || s.phase == phaseApproval || len(s.guarded()) > 0
	switch {
	case s.pauses.whole():
		return refuse("the intent is paused; go on with it first: pfl-forge resume %s", s.key.Intent)
	case s.refreshing && *r == forge.Retry{}:
		return ignore("the project's policy is being read again already")
	case len(waiting) == 0 && !stale && !s.refreshing:
		return refuse("the intent is %s; only what failed, or waits for you, can be retried", s.intent.Status)
	}
	s.heed(r)
	for _, t := range waiting {
		s.land(t)
	}
	if stale && !s.refreshing {
		s.refresh()
	}
	return forge.Applied, nil
}

// tellLane sends an event to the project's lane.
func (s *Intent) tellLane(key string, reply bool, ev forge.Event) {
	ev.ID = noteID(s.key, key, ev)
	ev.To = s.key.ProjectKey()
	ev.Actor = string(s.key.Intent)
	s.open.tell(&s.eff, key, reply, ev)
}
