package flow

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// adjust records that a rule changed the flow.
func (s *Intent) adjust(name string, id forge.TaskID, format string, args ...any) {
	s.History.Adjust(s.now, name, id, fmt.Sprintf(format, args...))
}

// admitted starts the run: with the first step of its flow, or, when a retry
// follows a plan that stands, with that plan.
func (s answers) admitted(a *forge.RunAdmitted) (forge.Decision, error) {
	if s.Phase != control.Admission || a.Run != s.Run {
		return rule.Ignore("the intent does not wait for admission to run %d", a.Run)
	}
	s.Dispatch.Outbox.Answered(admitKey)
	s.Plan.Context = plan.Context{Past: a.Past, Unread: a.Unread, Knowledge: a.Knowledge}
	if s.Intent.IsGoal() {
		s.Goal.Known, s.Plan.Context.Knowledge = a.Knowledge, nil
	}
	s.Pause.Admitted(a.Paused, a.Resumed)
	if a.Obstacles != nil {
		s.Obstacles.Keeps = true
		if a.Obstacles.Number > s.Obstacles.Number {
			s.Obstacles.Learn(a.Obstacles, s.now)
		}
	}
	if !s.Policy.Known {
		s.Policy.Budget = a.Budget
	}
	s.Policy.Unread = a.ReadPolicy && !s.Policy.Known && s.Intent.Recipe == ""
	s.Policy.AsksFirst, s.Policy.Read = a.AskFirst, false
	r := course(s)
	if r.isPlanned() {
		r.gate()
	} else {
		r.startStep()
	}
	return forge.Applied, nil
}

// isPlanned reports whether there is anything to carry out.
func (s course) isPlanned() bool { return len(s.Tasks.Tasks) > 0 || len(s.Plan.Children) > 0 }

// answered takes the answer of a step of the whole intent. While the policy is
// read again, its analysis carries nothing but that.
func (s course) answered(r *forge.Result) {
	if a, ok := r.Output.(*forge.Analysis); ok && s.Policy.Reading {
		s.policyRead(a.Policy)
		return
	}
	s.Plan.Session.Reported(r.Session)
	parent := &plan.Parent{Intent: &s.Intent, Number: r.Attempt.Number}
	var o plan.Outcome
	switch out := r.Output.(type) {
	case *forge.Analysis:
		s.adopt(out.Policy)
		parent.MaxDepth, parent.Whole = s.Policy.MaxDepth, s.Policy.MergeWhole
		o = plan.Analyzed(parent, r.Attempt.Step, out)
	case *forge.Audit:
		s.adopt(r.Policy)
		o = plan.Audited(out)
	case *forge.Observed:
		s.adopt(r.Policy)
		o = plan.Observed(out)
	case *forge.Abstraction:
		o = plan.Abstracted(parent, out)
	case *forge.Intake:
		s.adopt(r.Policy)
		o = plan.TakenIn(parent, out)
	default: // the others are of tasks, or the project's
	}
	s.follow(r.Attempt, &o)
}

// adopt takes the project's policy as a worker has read it. It is in force from
// the next decision of this step on.
func (s course) adopt(p *forge.Policy) {
	if p == nil {
		return
	}
	first := !s.Policy.Known
	s.Policy.Policy, s.Policy.Known = *p, true
	if first && s.History.Usage.CostUSD > 0 {
		s.commands(s.Dispatch.Commit) // of what was spent before it was known that there is a budget
	}
}

// follow continues after the answer of a step of the whole intent: it asks a
// person, goes on with another step, ends the run, or plans.
func (s course) follow(a forge.Attempt, o *plan.Outcome) {
	if o.Err != nil {
		s.invalid(a, o.Err)
		return
	}
	s.Plan.Attempts.Worked()
	switch {
	case len(o.Questions) > 0:
		plan.Ask(&s.Intent, o.Questions)
		s.Phase = control.Asking
		s.Reason = rule.Count(len(o.Questions), "question") + " to answer"
		s.adjust(rule.Clarify, "", "%s", rule.Count(len(o.Questions), "question"))
	case o.Next != "":
		if o.Next == forge.StepArchitect {
			s.adjust(rule.Architect, "", "%s", rule.FirstLine(o.Why))
			s.Plan.Insufficient = o.Why
		} else {
			s.Plan.Patterns = o.Patterns
		}
		s.Plan.TurnTo(s.names(), o.Next)
		s.startStep()
	case o.Ends:
		if o.Audit != nil {
			s.Plan.Audit = o.Audit
		}
		s.Reason = o.Reason
		s.finish(forge.StatusDone)
	default:
		s.planned(o.Plan, o.Reason)
	}
}

// planned takes a plan in place of the one before. Its hash is made when the
// risk is known, because an approval is of both.
func (s course) planned(p *plan.Plan, reason string) {
	p.ShowContext(s.DecidedBy)
	s.Tasks.Replace(s.DecidedBy, p.Tasks)
	s.Plan.Children, s.Plan.Base = p.Children, p.Base
	s.Goal.Begin(p.Goal)
	if s.Intent.Type == "" {
		s.Intent.Type = p.Type
	}
	s.Intent.Risk, s.Reason = s.Plan.Gate.Judge(p.Risk), reason
	if p.Joined > 0 {
		s.adjust(rule.Joined, "", "%s", rule.Count(p.Joined, "task"))
	}
	s.Plan.Gate.Name(plan.Hash(&s.Intent, p.Tasks, p.Children))
	s.Plan.Depends = plan.DependOn(slices.Concat(s.Intent.DependsOn, p.DependsOn))
	s.gate()
}

// policyRead begins the run that waited for the policy, or continues everything that waited for a
// person, whom a change of the policy may have answered.
func (s course) policyRead(p *forge.Policy) {
	s.Policy.Reading, s.Policy.Unread, s.Policy.Read = false, false, true
	s.Plan.Attempts.Worked()
	s.adopt(p)
	switch s.Phase {
	case control.Analyzing, control.OverBudget:
		s.Reason = ""
		s.startStep()
		return
	case control.Approval:
		if consent(s).first() {
			s.startStep()
		} else {
			s.gate()
		}
		if s.Phase == control.Approval {
			s.continueIfApproved()
		}
		return
	default:
	}
	for _, t := range s.Tasks.At(task.Protected) {
		s.tasks(t.Approved)
	}
	if s.Tasks.Has(task.Protected) {
		s.continueIfApproved()
	}
	for _, makes := range []bool{false, true} { // what is under way goes on before anything is made
		for _, t := range s.Tasks.Tasks {
			if t.Stage == task.OverBudget && makes == task.Makes(t.Unfunded) {
				s.tasks(t.BudgetRaised)
			}
		}
	}
}

// gate holds an intent that a person has to approve, and lets the others go on.
// It is asked again after an edit, a change of the policy and a retry.
func (s course) gate() {
	why := ""
	if s.isPlanned() {
		reworded := ""
		if t := s.goalTask(); t != nil {
			reworded = goal.Reworded(&s.Intent, t)
		}
		why = s.Plan.Gate.NeedsApproval(&s.Intent, s.Policy.TrustedOrigins, reworded)
	}
	if why != "" && s.Plan.Gate.Approved == nil {
		if s.Phase != control.Approval {
			s.adjust(rule.AwaitApproval, "", "%s", why)
		}
		s.Phase = control.Approval
		s.Reason = why
		return
	}
	s.Intent.Status = forge.StatusApproved
	s.await()
}

// first reports whether the intent waits for a person to let it be analyzed: it has no plan yet
// that could wait for approval.
func (s consent) first() bool { return s.Phase == control.Approval && !course(s).isPlanned() }

// letIn reports whether the intent may be analyzed now. If not, its policy is
// read, which says so, or a person is asked: the wait comes before any money is
// spent on words that no person has vouched for.
func (s course) letIn() bool {
	gate, policy := &s.Plan.Gate, &s.Policy
	// Whom to ask, and of which origins, is in the policy: of most intents it
	// is read by their analysis, which would be too late here. It is read once:
	// a worker that reports none leaves the defaults.
	if policy.AsksFirst && gate.Doubtful(&s.Intent) && !policy.Known && !policy.Read {
		policy.Unread = true
	}
	if policy.Unread {
		s.Phase = control.Analyzing
		s.readPolicy()
		return false
	}
	if !policy.AsksFirst {
		return true
	}
	why := gate.AsksFirst(s.DecidedBy, &s.Intent, &policy.Policy)
	if why == "" {
		return true
	}
	// Asked again after each edit, with the same words: the history has it once.
	if s.Phase != control.Approval {
		s.adjust(rule.AwaitApproval, "", "%s", why)
	}
	s.Phase, s.Reason = control.Approval, why
	return false
}

// goalTask returns the task of a goal, or nil.
func (s *Intent) goalTask() *task.Task {
	if s.Goal.Started && len(s.Tasks.Tasks) == 1 {
		return s.Tasks.Tasks[0]
	}
	return nil
}

// maxPlannedFiles bounds the files of an intent that other intents hear of.
const maxPlannedFiles = 100

// await waits for the intents that this one depends on, if any, and tells the project the plan.
func (s course) await() {
	missing := s.Plan.Depends.Ask()
	s.sendToProject(plannedKey, s.Run, false, forge.Event{Message: &forge.RunPlanned{
		Run: s.Run, Budget: s.Policy.Budget, Children: s.Plan.Children.IDs(), DependsOn: missing, Number: s.Dispatch.Messages,
		OwnUSD: budget.Own(&s.Intent, s.Policy.Budget, s.Foreign),
	}})
	if len(missing) == 0 {
		s.work()
		return
	}
	s.Phase = control.Depending
	s.adjust(rule.AwaitDependency, "", "%s", plan.JoinIDs(missing, ", "))
}

// dependencyEnded takes how an intent ended that this one depends on.
func (s answers) dependencyEnded(d *forge.DependencyEnded) (forge.Decision, error) {
	if s.Phase == control.Closed && s.Intent.Status == forge.StatusBlocked && d.Run == s.Run && s.Plan.Depends.Freed(d) {
		course(s).free(d.Intent)
		return forge.Applied, nil
	}
	if s.Phase != control.Depending || d.Run != s.Run || !s.Plan.Depends.WaitsFor(d.Intent) {
		return rule.Ignore("the intent does not wait for %q", d.Intent)
	}
	name, why := s.Plan.Depends.Ended(s.DecidedBy, d)
	switch {
	case name != "":
		s.adjust(name, "", "%s", why)
		s.tasks(func(x *task.Turn) { s.Tasks.EndAll(x, why) })
		s.Reason = why
		course(s).finish(forge.StatusBlocked)
	case len(s.Plan.Depends.Open()) == 0:
		course(s).work()
	}
	return forge.Applied, nil
}

// free begins another run of an intent that was blocked, because what it depends on got done
// after all. A person's pause stays: only the person ends it.
func (s course) free(by forge.IntentID) {
	s.anotherRun("")
	s.adjust(rule.Freed, "", "%s", by)
}

// anotherRun begins another run. Tasks that failed are tried again, from what they did before,
// except where a script or a conflict would only repeat that; tasks that are done stay done.
func (s course) anotherRun(instructions string) {
	for _, t := range s.Tasks.Tasks {
		if t.Status == forge.TaskFailed {
			t.Reset(instructions, s.Intent.Recipe != "" || s.Escalate)
			s.Goal.Retry()
		}
	}
	s.History.Retry()
	s.Plan.Retry()
	s.Intent.Status = forge.StatusProposed
	s.askAdmission()
}

// work starts the tasks, or children, that can start. When none is left to
// start or to wait for, the run is over.
func (s course) work() {
	if len(s.Plan.Children) > 0 {
		s.split()
		return
	}
	s.Phase = control.Working
	ended := s.Tasks.Work(func(t *task.Task) {
		s.Intent.Status = forge.StatusExecuting
		s.tasks(t.Start)
	})
	if !ended {
		return
	}
	if why := s.Tasks.NothingToDo(); why != "" {
		s.Reason = why
	}
	for _, t := range s.Tasks.Tasks {
		if t.Stage != task.Done && s.Reason == "" {
			s.Reason = string(t.ID) + ": " + t.Failure
			if s.Goal.Started {
				s.Reason = t.Failure // there is no other task
			}
		}
	}
	s.finish(s.tasksStatus())
}

// tasksStatus sums up the tasks.
func (s course) tasksStatus() forge.Status { return plan.StatusOf(s.Tasks.Done(), len(s.Tasks.Tasks)) }

// next goes on after a task has ended. When that comes after the run did, the run ended otherwise.
func (s course) next() {
	switch {
	case s.Phase == control.Working:
		s.work()
	case s.Intent.Status.Failed():
		s.correct(s.tasksStatus(), s.Reason)
	}
}

// withdrawAll tells workers that none of their results is needed any more.
func (s course) withdrawAll() {
	s.commands(s.Dispatch.WithdrawAll)
	s.Obstacles.Held = nil
	s.Policy.Reading = false
}

// finish ends a run: those who wait for the intent are told, and the project
// reflects upon it, unless its children were reflected upon already, or the policy is not known.
func (s course) finish(status forge.Status) {
	if s.Policy.Reading {
		s.Policy.Reading = false
		x := s.turn()
		s.Dispatch.WithdrawStep(&x, forge.StepAnalyze)
	}
	s.Intent.Status = status
	s.close(len(s.Plan.Children) == 0 && !s.Policy.Reflection.Off && !s.Policy.Unread)
}
