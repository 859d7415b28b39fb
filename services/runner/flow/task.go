package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// stage is where a task stands; see the package's doc for the ways between.
type stage string

const (
	stagePending      stage = "pending"
	stageImplementing stage = "implementing"
	stageRebasing     stage = "rebasing"
	stageSummarizing  stage = "summarizing" // what a goal's iteration came to
	stageReviewing    stage = "reviewing"   // or judging
	stageReserving    stage = "reserving"   // waits for precedence on the files that conflicted
	stageLanding      stage = "landing"
	stageWaiting      stage = "waiting"  // for a person's files to get out of the way
	stageGuarded      stage = "guarded"  // for a person to approve a change of protected paths
	stageUnfunded     stage = "unfunded" // there is no money to go on
	stageDone         stage = "done"
	stageFailed       stage = "failed"
)

// task is a task with what the flow has to remember of it.
type task struct {
	forge.Task
	stage      stage
	implement  stepState
	rebase     stepState
	review     stepState
	rejections int // of this run: rejected, empty or not verified
	landings   int // of this run
	asks       int // requests to the lane, ever
	fresh      bool
	goOn       bool         // in the tree that the attempt before left
	talk       conversation // of the implementation
	reviewTalk conversation
	unfunded   forge.Step // that there is no money for
	cleared    string     // patch id that a person approved for protected paths
	replica    forge.ReplicaID
	feedback   string
	candidate  *forge.Rebase // what was verified last, and on what
	reviews    []forge.Review
	overlaps   []overlapping
	forecasts  int   // told to others, ever
	loop       *loop // of a goal; otherwise nil
}

func (t *task) ended() bool { return t.stage == stageDone || t.stage == stageFailed }

// reset lets a failed task try again, from what it did before, or afresh.
func (t *task) reset(instructions string, fresh bool) {
	t.stage, t.Status, t.Failure = stagePending, forge.TaskPending, ""
	t.rejections, t.landings = 0, 0
	if t.loop != nil {
		t.loop.used, t.loop.maxed = 0, false
		t.loop.summarize.worked()
	}
	t.implement.worked()
	t.rebase.worked()
	t.review.worked()
	t.fresh, t.goOn = fresh || t.Head == "", false
	if instructions != "" {
		t.feedback = strings.TrimSpace(instructions + "\n\n" + t.feedback)
	}
}

func (t *task) state(step forge.Step) *stepState {
	switch step {
	case forge.StepRebase:
		return &t.rebase
	case forge.StepReview, forge.StepJudge:
		return &t.review
	case forge.StepSummarize:
		return &t.loop.summarize
	default:
		return &t.implement
	}
}

// work starts the tasks whose dependencies are done, in order, as far as there
// is room. When none is left to start or to wait for, the run is over.
func (s *Intent) work() {
	if len(s.parts) > 0 {
		s.split()
		return
	}
	s.phase = phaseWorking
	busy, ended := 0, true
	for _, t := range s.tasks {
		if t.stage != stagePending && !t.ended() {
			busy++
		}
	}
	for _, t := range s.tasks {
		if t.stage == stagePending && busy < maxParallel && s.ready(t) {
			s.intent.Status = forge.StatusExecuting
			s.start(t)
			busy++
		}
		ended = ended && t.ended()
	}
	if ended {
		s.aggregate()
	}
}

func (s *Intent) ready(t *task) bool {
	return !slices.ContainsFunc(t.DependsOn, func(id forge.TaskID) bool { return s.task(id).stage != stageDone })
}

// issue sends a task's next attempt of a step to any replica.
func (s *Intent) issue(t *task, step forge.Step, at stage) {
	st := t.state(step)
	st.number++
	st.claim = 1
	t.stage = at
	s.send(s.command(t, step, st))
}

// again issues a step once more after a pause.
func (s *Intent) again(t *task, step forge.Step) {
	if makes(step) {
		s.startImplement(t)
		return
	}
	s.issue(t, step, stageOf(step))
}

func stageOf(step forge.Step) stage {
	switch step {
	case forge.StepRebase:
		return stageRebasing
	case forge.StepReview, forge.StepJudge:
		return stageReviewing
	case forge.StepSummarize:
		return stageSummarizing
	default:
		return stageImplementing
	}
}

func (s *Intent) command(t *task, step forge.Step, st *stepState) forge.Command {
	c := forge.Command{
		To:           s.key,
		Attempt:      forge.Attempt{Task: t.ID, Step: step, Number: st.number, Claim: st.claim},
		Intent:       s.intent,
		Task:         t.Task,
		Instructions: s.instructions,
	}
	switch step {
	case forge.StepImplement, forge.StepExecute:
		in := &forge.ImplementInput{Fresh: t.fresh, Continue: t.goOn, Feedback: t.feedback, Reviews: t.reviews, Overlaps: t.foreseen()}
		if t.loop != nil {
			in.Goal = new(s.goalFor(t, step))
		}
		c.Input, c.LimitedAgents = in, s.avoided()
		t.talk.in(&c)
	case forge.StepReview:
		c.Input, c.LimitedAgents = &forge.ReviewInput{Verify: t.candidate.Verify, Reviews: t.reviews}, s.avoided()
		t.reviewTalk.in(&c)
	case forge.StepSummarize, forge.StepJudge:
		c.Input, c.LimitedAgents = &forge.IterationInput{Goal: s.goalFor(t, step), Verify: verified(t)}, s.avoided()
		if t.candidate == nil {
			c.Task.Base, c.Task.Head = "", ""
		}
		s.talkOf(t, step).in(&c)
	default:
		c.Input = &forge.RebaseInput{}
	}
	return c
}

// start begins a task, or makes its change once more.
func (s *Intent) start(t *task) {
	if t.loop != nil {
		s.iterate(t)
		return
	}
	s.startImplement(t)
}

// startImplement sends a task to be implemented: the first time and after a
// conflict anywhere, afterwards to the replica that has its checkout.
func (s *Intent) startImplement(t *task) {
	t.Status = forge.TaskImplementing
	t.Attempts++
	if !t.goOn && (t.fresh || t.Head == "") {
		t.replica = ""
		if t.talk.begun || t.talk.number == 0 {
			s.begin(&t.talk, t.ID, t.making())
		}
	}
	st := &t.implement
	st.number++
	st.claim = 1
	t.stage = stageImplementing
	c := s.command(t, t.making(), st)
	c.Replica = t.replica
	s.send(c)
}

// claimKey names the timer that watches over work sent to one replica.
func claimKey(a forge.Attempt) string {
	return fmt.Sprintf("claim/%s/%s/%d", a.Task, a.Step, a.Number)
}

// started notes that the replica that the work was sent to has begun. Now it
// has as long as an attempt may take.
func (s *Intent) started(r *forge.Result) (forge.Decision, error) {
	key := claimKey(r.Attempt)
	if !s.open.hasTimer(key) {
		return ignore("nobody waits for %s to begin", r.Attempt)
	}
	t := s.task(r.Attempt.Task)
	if t.replica == "" {
		return ignore("%s is known to have begun", r.Attempt)
	}
	t.replica = ""
	s.open.arm(&s.eff, forge.Timer{To: s.key, Key: key, At: s.now.Add(s.policy.AttemptTimeout)})
	return forge.Applied, nil
}

// made takes what every attempt leaves, whatever it is worth.
func (t *task) made(r *forge.Result) {
	t.implement.worked()
	t.talk.heardOf(r.Session)
	t.replica, t.fresh, t.goOn = r.Replica, false, false
	t.Base, t.Head = forge.As[*forge.Implementation](r.Output).Base, forge.As[*forge.Implementation](r.Output).Head
}

func (s *Intent) implemented(t *task, r *forge.Result) {
	im := forge.As[*forge.Implementation](r.Output)
	t.made(r)
	switch {
	case im.Commits > 0:
		s.foresee(t, im.Overlaps)
		s.issue(t, forge.StepRebase, stageRebasing)
	case im.Unchanged:
		s.endTask(t, forge.TaskDone, "")
		s.work()
	default:
		s.outcome("empty")
		why := "Nothing was committed: the attempt left the branch as it was. Make the change and commit it."
		switch {
		case s.intent.Recipe != "" && t.rejections > 0:
			why = t.feedback // a script makes the same change again: what was wrong with that is the reason
			if note := fmt.Sprintf("Recipe %q made no other change than that.", s.intent.Recipe); !strings.HasSuffix(why, note) {
				why += "\n\n" + note
			}
		case s.intent.Recipe != "":
			why = fmt.Sprintf("Recipe %q changed nothing. Where that is fine, say allow_empty: true in it.", s.intent.Recipe)
		}
		if im.Leftover != "" {
			why += " Changes that were not committed are kept as " + im.Leftover + "."
		}
		if im.Summary != "" && s.intent.Recipe == "" {
			why += " The agent said: " + im.Summary
		}
		s.rework(t, ruleEmptyAttempt, why)
	}
}

// rework implements once more with feedback, or fails the task after as many
// attempts as the policy allows.
func (s *Intent) rework(t *task, rule, feedback string) {
	t.feedback = feedback
	if t.loop != nil {
		t.feedback = strings.TrimSpace(feedback + "\n\n" + t.loop.leftover)
		s.adjust(rule, t.ID, "%s", firstLine(feedback))
		s.iterate(t)
		return
	}
	t.Write = nil // writing the same again mends nothing: an agent goes on from what was written
	t.rejections++
	if t.rejections > s.policy.MaxReviewRetries {
		s.failTask(t, fmt.Sprintf("gave up after %d attempts: %s", t.rejections, firstLine(feedback)))
		return
	}
	s.adjust(rule, t.ID, "%s", firstLine(feedback))
	s.startImplement(t)
}

func (s *Intent) rebased(t *task, r *forge.Result) {
	rb := forge.As[*forge.Rebase](r.Output)
	t.rebase.worked()
	if len(rb.Conflicts) > 0 {
		s.outcome("conflict")
		s.conflict(t, rb.Conflicts, rb.Files)
		return
	}
	t.Base, t.Head, t.candidate = rb.Base, rb.Head, rb
	s.foresee(t, rb.Overlaps)
	broken := rb.Verify != nil && !rb.Verify.Passed
	if broken {
		s.outcome("verify failed")
	}
	switch {
	case t.loop != nil:
		s.startSummary(t)
	case broken:
		s.rework(t, ruleVerifyFailed, verifyFeedback(rb.Verify))
	default:
		s.startReview(t)
	}
}

// startReview has the change looked at by somebody who has not seen it before.
func (s *Intent) startReview(t *task) {
	s.begin(&t.reviewTalk, t.ID, t.checking())
	s.issue(t, t.checking(), stageReviewing)
}

func verifyFeedback(v *forge.VerifyReport) string {
	return fmt.Sprintf("%q failed after the change was put on the present base branch:\n%s", v.Command, v.Output)
}

func (s *Intent) reviewed(t *task, r *forge.Result) {
	rv := *forge.As[*forge.Review](r.Output)
	if rv.Head != t.Head || rv.TaskID != t.ID || (rv.Verdict != forge.VerdictApproved && rv.Verdict != forge.VerdictRejected) {
		s.outcome(string(forge.FailInvalidOutput))
		s.failed(t, &forge.Result{Attempt: r.Attempt, Output: &forge.Failure{
			Reason: forge.FailInvalidOutput, Message: "the review is not a verdict on commit " + t.Head,
		}})
		return
	}
	t.review.worked()
	rv.Attempt, rv.CreatedAt = t.implement.number, s.now
	t.reviews = append(slices.Clip(t.reviews), rv)
	if rv.Verdict == forge.VerdictRejected {
		s.outcome("rejected")
		s.rework(t, ruleRework, strings.Join(rv.Issues, "\n"))
		return
	}
	if s.guard(t) {
		return
	}
	s.land(t)
}

// failTask gives a task up. Tasks that depend on it cannot be done either.
func (s *Intent) failTask(t *task, why string) {
	s.adjust(ruleTaskFailed, t.ID, "%s", why)
	s.endTask(t, forge.TaskFailed, why)
	for again := true; again; {
		again = false
		for _, d := range s.tasks {
			i := slices.IndexFunc(d.DependsOn, func(id forge.TaskID) bool { return s.task(id).stage == stageFailed })
			if d.stage == stagePending && i >= 0 {
				s.adjust(ruleFailDependents, d.ID, "%s failed", d.DependsOn[i])
				s.endTask(d, forge.TaskFailed, fmt.Sprintf("it depends on %s, which failed", d.DependsOn[i]))
				again = true
			}
		}
	}
	s.work()
}

// endTask closes a task and gives back what it holds.
func (s *Intent) endTask(t *task, status forge.TaskStatus, failure string) {
	t.Status, t.Failure = status, failure
	t.stage = stageDone
	if status == forge.TaskFailed {
		t.stage = stageFailed
	}
	if t.Commit == "" {
		s.withdraw(t)
	}
	s.endForecast(t)
	s.eff.ReleasedTasks = append(s.eff.ReleasedTasks, t.ID)
}

func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 200
	if len(line) > most {
		line, more = strings.ToValidUTF8(line[:most], ""), true
	}
	if more {
		line += " ..."
	}
	return line
}
