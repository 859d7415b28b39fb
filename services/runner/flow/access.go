package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// accountKey is the key of the message by which the project hears of accounts.
const accountKey = "account"

// refused takes an attempt that the account of its agent refused, or that no agent
// was called for because of that, and reports whether it is one. seen numbers the
// knowledge of accounts when it was issued. It counts for nothing: the step is held
// until the account takes calls again. A quota that the intent finds itself is left
// to the rules of limits, by which another agent may stand in; the others are told.
func (s access) refused(r *forge.Result, seen int) bool {
	f, k := r.Failure(), &s.Obstacles
	if of := obstacle.Of(r); of != r.Agent {
		held := *r
		held.Agent = of
		r = &held
	}
	if !k.Keeps || r.Agent == "" || s.Policy.Reading && r.Attempt.Task == "" && r.Agent != forge.GitOrigin { // reading calls no agent
		return false
	}
	known := k.Find(r.Agent, s.now)
	switch f.Reason {
	case forge.FailAuth, forge.FailOrigin:
		// The project is told even if it knows of the refusal: from its list of
		// waiting intents it chooses the one that asks the person.
		s.report(r, seen)
	case forge.FailHeld:
		// A step that is held for a quota goes on by a timer, so the project needs no report.
		if known != nil && known.Until.IsZero() {
			s.report(r, seen)
		}
	case forge.FailQuota:
		if obstacle.Closes(f, s.now) {
			s.report(r, seen)
		}
		return false
	default:
		return false
	}
	step, t := r.Attempt.Step, s.Tasks.Find(r.Attempt.Task)
	s.stopped(t, r)
	if f.Reason == forge.FailHeld && known == nil { // opened meanwhile
		s.again(t, step)
		return true
	}
	if r.Agent == forge.GitOrigin {
		s.History.Adjust(s.now, rule.AwaitOrigin, r.Attempt.Task, rule.FirstLine(f.Message))
	} else {
		s.History.Adjust(s.now, rule.AwaitAccount, r.Attempt.Task, r.Agent+": "+rule.FirstLine(f.Message))
	}
	k.Hold(obstacle.Hold{Task: r.Attempt.Task, Step: step, Agent: r.Agent})
	// The timer is durable, and goes off whether or not anybody tells the intent.
	if f.Reason == forge.FailHeld && !known.Until.IsZero() {
		s.commands(func(x *dispatch.Turn) { s.Dispatch.Park(x, r.Attempt.Task, step, known.Until) })
	}
	return true
}

// stopped notes where an attempt ended that counts for nothing.
func (s access) stopped(t *task.Task, r *forge.Result) {
	var sess *session.Session
	if t == nil {
		sess = &s.Plan.Session
		sess.Reported(r.Session)
		return
	}
	s.tasks(func(x *task.Turn) {
		t.AttemptFailed(x, r.Attempt.Step, r.Failure(), task.Worker{Replica: r.Replica, Session: r.Session})
	})
	t.Uncount(r.Attempt.Step)
}

// report tells the project that an account refuses calls.
func (s access) report(r *forge.Result, seen int) {
	s.Obstacles.Reports++
	s.Obstacles.Refused(r.Agent, r.Failure(), s.now)
	f := *r.Failure()
	f.Message = rule.FirstLine(f.Message)
	s.sendToProject(accountKey, s.Obstacles.Reports, true, forge.Event{Message: &forge.ObstacleReported{
		Run: s.Run, Number: s.Obstacles.Reports, Seen: seen, Agent: r.Agent, Failure: f,
	}})
}

// reportLacking tells the project whether the intent has a step that no replica could do for long.
func (s access) reportLacking() {
	_, c := retry.Lacking(s.Dispatch.Outbox.Attempts(), s.counter, retry.Long)
	if m := s.Obstacles.Lacking(s.Run, c.Waits, c.Why, s.now); m != nil {
		s.sendToProject(accountKey, m.Number, true, forge.Event{Message: m})
	}
}

// parked notes that a step waits for a quota, so that it goes on earlier if a
// person opens the account.
func (s access) parked(r *forge.Result) {
	if s.Obstacles.Keeps && r.Agent != "" && !s.Policy.Reading && obstacle.Closes(r.Failure(), s.now) {
		s.Obstacles.Hold(obstacle.Hold{Task: r.Attempt.Task, Step: r.Attempt.Step, Agent: r.Agent})
	}
}

// drop forgets the step of a task that waits, or without a task of the whole intent.
func (s access) drop(id forge.TaskID) {
	s.Obstacles.Drop(func(h obstacle.Hold) bool { return h.Task == id })
}

// changed learns of accounts from the project, and makes the steps again that
// waited for one that takes calls by now.
func (s access) changed(m *forge.ObstaclesChanged) (forge.Decision, error) {
	if s.Phase == control.Closed || m.Number <= s.Obstacles.Number {
		return rule.Ignore("what there is to know of accounts is known")
	}
	s.Obstacles.Keeps = true
	look := s.Obstacles.Look
	free := s.Obstacles.Learn(m, s.now)
	if s.Obstacles.Look > look && len(free) == 0 && len(s.Obstacles.Looks) == 0 { // nothing of it waits any more
		s.reportBase(&forge.ObstacleReported{})
	}
	if s.Obstacles.Answered >= s.Obstacles.Reports {
		s.Dispatch.Outbox.Answered(accountKey)
	}
	// A pause or a budget may hold these once more: they are sent like any other.
	for _, h := range free {
		s.Dispatch.Outbox.CancelTimer(dispatch.ParkKey(h.Task, h.Step))
		s.again(s.Tasks.Find(h.Task), h.Step)
	}
	if s.DecidedBy.Has(rules.TimedHolds) {
		s.setTimers()
	}
	return forge.Applied, nil
}

// setTimers sets the timer of each step that waits for a quota and has none, such as one that was
// held for refused credentials: where both were reported at once, the project may know of the quota
// alone, and it tells nothing when that is over.
func (s access) setTimers() {
	for h, until := range s.Obstacles.Quotas(s.now) {
		if !s.Dispatch.Outbox.HasTimer(dispatch.ParkKey(h.Task, h.Step)) {
			s.commands(func(x *dispatch.Turn) { s.Dispatch.Park(x, h.Task, h.Step, until) })
		}
	}
}
