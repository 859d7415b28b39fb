package flow

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/dispatch"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// tasks has the machines of the tasks take a step, and carries out what follows.
func (s *Intent) tasks(step func(*task.Turn)) {
	x := s.taskTurn()
	step(x)
	s.perform(x)
}

// taskTurn returns the turn in which the machines of the tasks take a step: the
// facts about the intent go in with it, and the tasks' effects come out.
func (s *Intent) taskTurn() *task.Turn {
	return task.NewTurn(task.Turn{
		Now: s.now, Rules: s.DecidedBy, Intent: &s.Intent, Policy: &s.Policy.Policy, Names: s.names(), Strategy: s.strategy(), Tasks: &s.Tasks,
	})
}

// perform carries out what the machines of the tasks ask for, in order. Carrying out
// one effect may step a task again, whose effects come before the next one.
func (s *Intent) perform(x *task.Turn) {
	for _, e := range x.Effects {
		s.carryOut(e)
	}
}

// carryOut carries out one effect of a task's step.
func (s *Intent) carryOut(e task.Effect) {
	switch e := e.(type) {
	case task.Adjust:
		s.History.Adjust(s.now, e.Rule, e.Task, e.Detail)
	case task.Correct:
		s.History.Correct(e.Outcome)
	case task.Issue:
		if (access{s}).awaitsBase(e.Task, e.Step) {
			return
		}
		c := s.command(e.Task, e.Step)
		c.Replica = e.Replica
		s.send(&c)
	case task.Wait:
		if s.Obstacles.Keeps {
			access{s}.baseRed(e)
			return
		}
		s.commands(func(x *dispatch.Turn) { s.Dispatch.Park(x, e.Task, e.Step, e.At) })
	case task.AskMerge:
		s.request(e.Task, true, s.mergeOf(e.Task))
	case task.AskLock:
		s.request(e.Task, true, forge.Event{Message: e.Request(s.Run)})
	case task.TakeBack:
		s.request(e.Task, false, forge.Event{Message: e.Request(s.Run)})
	case task.StopWork:
		s.withdrawTask(e.Task)
	case task.Escalate:
		s.Escalate = true
	case task.SendOverlap:
		s.sendOverlap(e)
	case task.Release:
		s.eff.ReleasedTasks = append(s.eff.ReleasedTasks, e.Task)
	case task.FreeDependents:
		if s.Phase == control.Working {
			s.Tasks.Free(e.Task)
		}
	case task.Next:
		course{s}.next()
	}
}

// strategy returns how the change of the intent's tasks is made and checked.
func (s *Intent) strategy() task.Strategy {
	if s.Goal.Started {
		return goal.Strategy{State: &s.Goal, Options: s.Intent.Goal}
	}
	return task.Change{}
}

// names returns the generator of the names of the intent's sessions.
func (s *Intent) names() session.Names {
	return session.Names{Key: s.key, Created: s.Intent.CreatedAt, None: s.Intent.Recipe != ""}
}

// commands has the machine of the commands take a step, and makes attempts
// without budget wait for a person.
func (s *Intent) commands(step func(*dispatch.Turn)) {
	x := s.turn()
	step(&x)
	s.overBudget(x.Refused)
}

// turn returns the facts about the intent that the machine of the commands needs, as of
// this moment of the decision: budget and costs change on the way.
func (s *Intent) turn() dispatch.Turn {
	return dispatch.Turn{
		Key: s.key, Now: s.now, Run: s.Run, Budget: s.Policy.Budget, OwnUSD: budget.Own(&s.Intent, s.Policy.Budget, s.Foreign),
		SpentUSD: s.History.Usage.CostUSD, Recipe: s.Intent.Recipe != "", ClaimTimeout: s.Policy.ClaimTimeout,
		Pause: &s.Pause, Obstacles: &s.Obstacles, Effects: &s.eff,
	}
}

// send issues a command as soon as it is neither held nor waits for budget.
func (s *Intent) send(c *forge.Command) {
	x := s.turn()
	c.Patience = s.counter(c.Attempt).Patience(s.DecidedBy)
	s.Dispatch.Send(&x, c)
	s.overBudget(x.Refused)
}

// counter returns the counter of the step of an attempt.
func (s *Intent) counter(a forge.Attempt) *retry.Counter {
	if t := s.Tasks.Find(a.Task); t != nil {
		return s.strategy().Counter(t, a.Step)
	}
	return &s.Plan.Attempts
}

// overBudget makes attempts wait for a person, because there is no budget for them: a
// step of the whole intent in the phase for that, a task in its stage.
func (s *Intent) overBudget(list []dispatch.Refusal) {
	for _, r := range list {
		if t := s.Tasks.Find(r.Attempt.Task); t != nil {
			s.tasks(func(x *task.Turn) { t.NoBudget(x, r.Attempt.Step, r.Why) })
			continue
		}
		s.History.Adjust(s.now, rule.Budget, "", r.Why)
		s.Phase = control.OverBudget
		s.Reason = r.Why
	}
}

// command returns the command of a task's newest attempt of a step.
func (s *Intent) command(t *task.Task, step forge.Step) forge.Command {
	strategy := s.strategy()
	c := forge.Command{
		To: s.key, Attempt: strategy.Counter(t, step).Attempt(t.ID, step), Intent: s.Intent, Task: t.Task, Instructions: s.Instructions,
	}
	if step == forge.StepRebase {
		in := &forge.RebaseInput{Title: s.Tasks.CommitTitle(&s.Intent, t), Approver: strings.Join(consent{s}.names(t), ", ")}
		if t.Stage == task.Checking {
			in.Asked = t.Inquiry.Wanted
		} else { // while the base branch is known to be red, each change that is verified shows whether it still is
			fault, red := task.Fault{Task: t}, s.Obstacles.Find(forge.GitBase, s.now) != nil
			in.Adopted = task.Taking{Task: t}.Of()
			in.Tried, in.VerifyInMerge, in.Settle = fault.Known(), !red && fault.MayLeave(&s.Policy.Policy, strategy), s.DecidedBy.Has(rules.SettledCheck)
		}
		c.Input = in
		return c
	}
	c.LimitedAgents = s.Limits.Names(s.now)
	c.Wish = t.Wish
	strategy.Session(t, step).Assign(&c)
	if s := (task.Escalation{Task: t}).Stronger(&s.Policy.Policy, &s.Intent, step); s != nil && !(task.Pair{Task: t}).Asked(step) {
		c.Stronger = new(*s)
	}
	g, isGoal := strategy.(goal.Strategy)
	reviews := task.Best{Task: t}.VisibleReviews()
	switch step {
	case forge.StepImplement, forge.StepExecute:
		in := &forge.ImplementInput{
			Fresh: t.Fresh, Continue: t.Continue, Feedback: t.Feedback, Reviews: reviews, Overlaps: t.PendingOverlaps(),
			Answered: t.Word.Answered,
		}
		if isGoal {
			in.Goal = new(g.Loop(t, step))
		} else {
			in.Knowledge, in.Analyzed = s.Plan.Context.Knowledge, s.Plan.Base
		}
		c.Input = in
	case forge.StepReview:
		in := &forge.ReviewInput{
			Reviews: reviews, Unchanged: t.Candidate == nil, Asked: t.Inquiry.Runs, MayAsk: (task.Asked{Task: t}).Left(&s.Policy.Policy, &s.Intent),
		}
		if t.Candidate != nil {
			in.Verify, in.Unverified = t.Candidate.Verify, t.Candidate.Unverified
		}
		if pair := (task.Pair{Task: t}); pair.Asked(step) { // who does not hear what the first said of the same commit
			in.Second, in.First = new(*t.Second), pair.First().By
			in.Reviews = reviews[:max(len(reviews)-1, 0)]
		}
		c.Input = in
	default: // summarize and judge, of a goal
		c.Input = &forge.IterationInput{Goal: g.Loop(t, step), Verify: g.Verified(t)}
		if goal.Unchanged(t) { // judged is the base that was verified
			c.Task.Head = ""
		}
	}
	return c
}

// startStep issues the step that the intent as a whole is at, after the policy has been read: so
// that the first call has its money, and a person is asked before it where the policy says so.
func (s course) startStep() {
	if s.Policy.Reading || !s.letIn() {
		return // what is read leads here again
	}
	s.Phase = control.Analyzing
	s.Plan.Next(s.names())
	c := forge.Command{
		To: s.key, Attempt: s.Plan.Attempts.Attempt("", s.Plan.Step), Intent: s.Intent,
		LimitedAgents: s.Limits.Names(s.now), Instructions: s.Instructions, Wish: s.Plan.Asked.Wish,
	}
	s.Plan.Complete(&c)
	s.send(&c)
}

// readPolicy reads the project's policy: before the first call, and again because a person may have
// changed it. It calls no agent, so it neither waits for money nor for the end of a pause.
func (s course) readPolicy() {
	s.Policy.Reading = true
	s.Plan.Attempts.Next()
	x, a := s.turn(), s.Plan.Attempts.Attempt("", forge.StepAnalyze)
	c := forge.Command{To: s.key, Attempt: a, Intent: s.Intent, Patience: s.Plan.Attempts.Patience(s.DecidedBy), Input: &forge.AnalyzeInput{PolicyOnly: true}}
	s.Dispatch.Issue(&x, &c)
}

// started notes that the replica that the work was sent to has begun. Now it has as long as
// an attempt may take. Or it notes that a replica can do what none could. A task names a
// replica only until then: should this attempt get lost, any replica may have the next one.
func (s *Intent) started(r *forge.Result) (forge.Decision, error) {
	if s.counter(r.Attempt).Found() {
		return forge.Applied, nil
	}
	if !s.Dispatch.Outbox.HasTimer(dispatch.ClaimKey(r.Attempt)) {
		return rule.Ignore("nobody waits for %s to begin", r.Attempt)
	}
	t := s.Tasks.Find(r.Attempt.Task)
	if t.Replica == "" {
		return rule.Ignore("%s is known to have begun", r.Attempt)
	}
	t.Replica = ""
	x := s.turn()
	s.Dispatch.Began(&x, r.Attempt, s.Policy.AttemptTimeout)
	return forge.Applied, nil
}

// late books the costs of an attempt whose result is not needed any more. If a pause withdrew
// the attempt, the place at which it stopped is noted, whatever it cost.
func (s *Intent) late(r *forge.Result) (forge.Decision, error) {
	if !s.Dispatch.Expects(r.Attempt) || r.IsStart() || !s.stoppedAt(r) && r.Usage == (forge.Usage{}) {
		return rule.Ignore("attempt %s is not open", r.Attempt)
	}
	s.Dispatch.Billed(r.Attempt)
	s.History.Late(s.now, r, s.Phase == control.Closed)
	s.commands(s.Dispatch.Commit)
	return forge.Applied, nil
}

// stoppedAt notes where an attempt stopped that a pause withdrew, so that it
// goes on there, and reports whether it did.
func (s *Intent) stoppedAt(r *forge.Result) bool {
	c := s.Dispatch.HeldStep(r.Attempt.Task, r.Attempt.Step)
	if c == nil {
		return false
	}
	sess := &s.Plan.Session
	t := s.Tasks.Find(r.Attempt.Task)
	if t != nil {
		sess = s.strategy().Session(t, c.Attempt.Step)
	}
	sess.Reported(r.Session)
	sess.Assign(c)
	if t != nil && task.Makes(c.Attempt.Step) {
		c.Replica, t.Replica = r.Replica, r.Replica
	}
	return true
}

// withdrawTask tells workers that the results of a task are not needed any more.
func (s *Intent) withdrawTask(t *task.Task) {
	s.commands(func(x *dispatch.Turn) { s.Dispatch.WithdrawTask(x, t.ID) })
	access{s}.drop(t.ID)
	s.Dispatch.Outbox.Answered(taskKey(t))
}
