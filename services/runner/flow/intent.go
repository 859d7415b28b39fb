package flow

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/history"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Intent is the state machine of one intent. It is composed of smaller ones, each
// in a package of its own: it hands each event to the one that knows what follows,
// and carries out what that returns. The zero value is not ready: see NewIntent.
type Intent struct {
	intentState

	key forge.Key
	eff forge.Effects // of the step that is being taken
	now time.Time
}

// The methods of the composition stand on types of their own, by what they do: person
// takes what people ask (person.go), answers what other machines say (messages.go),
// course leads a run from phase to phase (run.go, end.go), consent knows who approved it
// (approve.go), access whose account refuses calls (access.go), view shows it (view.go).
// All are the same machine: the types keep the methods of each purpose together, and
// have no state of their own. course(s).gate() calls the method gate of the intent s.
type (
	core    = Intent
	person  struct{ *core }
	answers struct{ *core }
	course  struct{ *core }
	consent struct{ *core }
	access  struct{ *core }
	view    struct{ *core }
)

// intentState is everything that an intent remembers; a snapshot holds it.
type intentState struct {
	// Stamp says when the newest event was applied, and by which rules.
	rule.Stamp

	// Intent is as it was submitted, with judgments and answers since.
	Intent forge.Intent
	// Phase is where the run stands.
	Phase control.Phase
	// Run is the number of the present run, from 1.
	Run int
	// Ends counts how often the project was told that a run ended.
	Ends int
	// Reason says, for a person, why the intent waits or failed.
	Reason string
	// Escalate says that some task of this run lost a conflict to an outsider.
	Escalate bool
	// Foreign says that another system set the intent's own budget.
	Foreign bool
	// Instructions are the words that a person added to a retry.
	Instructions string
	// Policy is the one in force.
	Policy plan.Policy
	// Plan covers the part of a run before its tasks.
	Plan plan.State
	// Tasks are the tasks of the plan.
	Tasks task.Set
	// Goal is how far a goal is.
	Goal goal.State
	// History is the record of all runs.
	History history.State
	// Pause says what is paused.
	Pause pause.State
	// Dispatch holds commands, timers and messages to other machines.
	Dispatch dispatch.State
	// Obstacles are those that are known, and the steps that wait for their end.
	Obstacles obstacle.Known
	// Limits are the agents that are at their limits.
	Limits retry.Limits
	// Decided has the ids of what people asked: a redelivery must not be taken for another act.
	Decided map[string]bool
}

// NewIntent returns the machine of an intent that was not submitted yet.
func NewIntent(key forge.Key) *Intent {
	return &Intent{key: key, intentState: intentState{
		Policy: plan.Policy{Policy: forge.DefaultPolicy()}, Plan: plan.State{Step: forge.StepAnalyze}, Decided: map[string]bool{},
	}}
}

// Step decides on one event by a version of the rules. The effects have to happen once the decision
// is durable. Unless the ruling is Applied, the state is as it was and nothing is to be journaled.
func (s *Intent) Step(by rules.Version, ev forge.Event) (forge.Effects, forge.Ruling) {
	s.eff, s.now = forge.Effects{}, ev.At
	last := s.Stamp
	s.DecidedBy = by
	decision, err := s.decide(&ev)
	if decision == forge.Applied && control.Personal(&ev) {
		s.Decided[ev.ID] = true
	}
	if s.UpdatedAt = ev.At; decision != forge.Applied {
		s.Stamp = last
	} else {
		access{s}.reportLacking()
		if len(s.Obstacles.Looks) > 0 && by.Has(rules.EndedLook) {
			access{s}.reportEndedLooks()
		}
	}
	eff := s.eff
	s.eff, s.now = forge.Effects{}, time.Time{}
	return eff, rule.Ruling(s.key, &ev, decision, err)
}

// Pending returns every effect that has to be in force, in the order in which they were asked for.
func (s *Intent) Pending() forge.Effects { return s.Dispatch.Outbox.Effects() }

// decide applies an event, or says why not. It must not change the state before
// it is certain to return Applied.
func (s *Intent) decide(ev *forge.Event) (forge.Decision, error) {
	if m, ok := ev.Message.(*forge.Submit); ok {
		return person{s}.submit(m, ev)
	}
	if s.Phase == control.None {
		return rule.Refuse("there is no intent %q; see `pfl-forge status`", s.key.Intent)
	}
	if control.Personal(ev) {
		if s.Decided[ev.ID] {
			return rule.Ignore("this was asked and decided already")
		}
		return person{s}.handleRequest(ev)
	}
	switch m := ev.Message.(type) {
	case *forge.Result:
		return s.result(m)
	case *forge.TimerFired:
		return s.timer(m)
	default:
		return answers{s}.handleMessage(ev)
	}
}

// result takes a worker's report. A report on an attempt that is not open any
// more changes nothing but the account.
func (s *Intent) result(r *forge.Result) (forge.Decision, error) {
	if !s.Dispatch.Outbox.Wants(r.Attempt) {
		return s.late(r)
	}
	if r.IsStart() {
		return s.started(r)
	}
	if r.Failure() == nil && !r.Answers() {
		blank := *r
		blank.Output = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
		r = &blank
	}
	s.History.Step(s.now, r)
	x, seen := s.turn(), s.Dispatch.Outbox.Accounts(r.Attempt)
	s.Dispatch.Close(&x, r.Attempt, r.Usage.CostUSD)
	s.overBudget(x.Refused)
	s.History.Observe(s.now, s.key.Intent, r.Observations)
	switch {
	case r.Failure() != nil && access{s}.refused(r, seen):
	case r.Failure() != nil:
		s.failed(r)
	case r.Attempt.Task == "":
		course{s}.answered(r)
	default:
		s.worked(s.Tasks.Find(r.Attempt.Task), r)
	}
	return forge.Applied, nil
}

// worked takes the answer of a task's step.
func (s *Intent) worked(t *task.Task, r *forge.Result) {
	by := task.Worker{Replica: r.Replica, Session: r.Session}
	g := goal.Strategy{State: &s.Goal, Options: s.Intent.Goal}
	x := s.taskTurn()
	var unusable error
	switch out := r.Output.(type) {
	case *forge.Implementation:
		if r.Attempt.Step == forge.StepExecute {
			g.Executed(x, t, out, by)
		} else {
			t.Implemented(x, out, by)
		}
	case *forge.Rebase:
		t.Rebased(x, out)
		defer access{s}.verified(t, out)
	case *forge.Review:
		unusable = t.Reviewed(x, out, forge.Reviewer{Agent: r.Agent, Model: r.Model})
	case *forge.Summarization:
		g.Summarized(x, t, out, r.Session)
	case *forge.Judgment:
		unusable = g.Judged(x, t, out)
	default: // the others are of the whole intent, or the project's
	}
	s.perform(x)
	if unusable != nil {
		s.invalid(r.Attempt, unusable)
	}
}

// invalid takes an answer that cannot be used for a failure of its attempt.
func (s *Intent) invalid(a forge.Attempt, err error) {
	s.History.Correct(string(forge.FailInvalidOutput))
	s.failed(&forge.Result{Attempt: a, Output: &forge.Failure{Reason: forge.FailInvalidOutput, Message: err.Error()}})
}

// failed takes an attempt that did not do its job.
func (s *Intent) failed(r *forge.Result) {
	step, t := r.Attempt.Step, s.Tasks.Find(r.Attempt.Task)
	sess := &s.Plan.Session
	if t != nil {
		sess = s.strategy().Session(t, step)
		s.tasks(func(x *task.Turn) {
			t.AttemptFailed(x, step, r.Failure(), task.Worker{Replica: r.Replica, Session: r.Session})
		})
	} else {
		sess.Reported(r.Session)
		if rule.Failures[r.Failure().Reason].Then == rule.NewSession {
			sess.Start(s.names(), "", step)
		}
	}
	if r.Policy != nil && !s.Policy.Reading {
		// Nobody was called: there is a budget that this intent has not heard of.
		s.Policy.Budget = r.Policy.Budget
	}
	turn, policy := s.turn(), &s.Policy.Policy
	if t != nil && (task.Pair{Task: t}).Asked(step) {
		alone := *policy
		alone.Fallbacks, policy = 0, &alone // nobody stands in for the second reviewer: it could be the first
	}
	d := retry.Decide(s.counter(r.Attempt), &s.Limits, &retry.Failed{
		Result: r, Now: s.now, Policy: policy, PolicyKnown: s.Policy.Known,
		Budgeted: turn.Charged(), PolicyOnly: s.Policy.Reading,
	})
	if d.Rule != "" {
		s.History.Adjust(s.now, d.Rule, r.Attempt.Task, d.Detail)
	}
	switch d.Action {
	case retry.CarryOn:
		s.Pause.ByRule(r.Attempt.Task, d.Why)
		t.Uncount(step)
		s.again(t, step)
	case retry.Again:
		s.again(t, step)
	case retry.Elsewhere:
		if t == nil {
			step = s.Plan.Step
		}
		sess.Start(s.names(), r.Attempt.Task, step)
		s.again(t, step)
	case retry.Later:
		access{s}.parked(r)
		s.commands(func(x *dispatch.Turn) { s.Dispatch.Park(x, r.Attempt.Task, step, d.At) })
	case retry.NoBudget:
		s.overBudget([]dispatch.Refusal{{Attempt: r.Attempt, Why: d.Why}})
	case retry.GiveUp:
		s.giveUp(t, step, d.Why)
	}
}

// again issues a step once more, at once.
func (s *Intent) again(t *task.Task, step forge.Step) {
	switch {
	case t != nil:
		s.tasks(func(x *task.Turn) { t.Again(x, step) })
	case s.Policy.Reading:
		course{s}.readPolicy()
	default:
		course{s}.startStep()
	}
}

// giveUp takes that a step is not tried any more.
func (s *Intent) giveUp(t *task.Task, step forge.Step, why string) {
	switch {
	case t != nil:
		s.tasks(func(x *task.Turn) { t.GaveUp(x, step, why) })
		t.Stands = t.Stage == task.Failed && !task.Makes(step) && s.DecidedBy.Has(rules.StandingChange)
	case s.Policy.Reading && s.Phase != control.Analyzing:
		s.Policy.Reading = false
		s.Plan.Attempts.Worked()
		if (consent{s}).first() { // it may be approved meanwhile
			course{s}.startStep()
		}
		why = "the policy could not be read: " + why
		if s.Phase == control.OverBudget {
			s.Reason = why
		}
		for _, t := range s.Tasks.At(task.OverBudget) {
			t.Failure = why
		}
	default:
		s.Reason = string(step) + ": " + why
		s.History.Adjust(s.now, rule.TaskFailed, "", cause.Gist(s.Reason))
		course{s}.finish(forge.StatusError)
	}
}

// timer takes a timer that fired: a pause is over, or a replica did not begin.
func (s *Intent) timer(fired *forge.TimerFired) (forge.Decision, error) {
	if !s.Dispatch.Outbox.HasTimerAt(fired.Key, fired.At) {
		return rule.Ignore("no timer %q is set for %s", fired.Key, fired.At)
	}
	s.Dispatch.Outbox.CancelTimer(fired.Key)
	if a, ok := dispatch.Parked(fired.Key); ok {
		access{s}.drop(a.Task)
		s.again(s.Tasks.Find(a.Task), a.Step)
		return forge.Applied, nil
	}
	x := s.turn()
	c, ok := s.Dispatch.Reclaim(&x, fired.Key)
	if !ok {
		return forge.Applied, nil
	}
	// A late result of that replica is of an older claim and changes nothing.
	t := s.Tasks.Find(c.Attempt.Task)
	s.History.Adjust(s.now, rule.Reclaim, t.ID, fmt.Sprintf("replica %q", c.Replica))
	t.Reclaim()
	next := s.command(t, c.Attempt.Step)
	if c.BudgetUSD > 0 {
		s.commands(s.Dispatch.Commit) // the replica may have spent what was reserved
	}
	s.send(&next)
	return forge.Applied, nil
}
