package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// loop is what the task of a goal goes through: iterations until every criterion is
// met. Each executes, is put on the base branch's tip and verified there, is summed up
// and judged.
type loop struct {
	iterations []forge.Iteration // of all runs
	used       int               // of this run
	maxed      bool              // this run had all it may have
	execution  *forge.Execution  // of the newest iteration
	leftover   string            // what is said of changes that it did not commit
	summarize  stepState
	talk       conversation // of the newest summary
}

// newest is the iteration under way. What views of the state before show stays as it
// was.
func (l *loop) newest() *forge.Iteration {
	l.iterations = slices.Clone(l.iterations)
	return &l.iterations[len(l.iterations)-1]
}

// makes reports whether attempts of a step make a task's change.
func makes(step forge.Step) bool { return step == forge.StepImplement || step == forge.StepExecute }

// making is the step that makes the task's change.
func (t *task) making() forge.Step {
	if t.loop != nil {
		return forge.StepExecute
	}
	return forge.StepImplement
}

// checking is the step in which somebody else looks at the change.
func (t *task) checking() forge.Step {
	if t.loop != nil {
		return forge.StepJudge
	}
	return forge.StepReview
}

// takenIn takes an intake: questions, or what is to be done until when.
func (s *Intent) takenIn(r *forge.Result) {
	in := forge.As[*forge.Intake](r.Output)
	s.talk.heardOf(r.Session)
	s.adopt(r.Policy)
	if len(in.Clarifications) > 0 {
		s.analyze.worked()
		s.ask(in.Clarifications)
		return
	}
	err := checkIntake(in)
	if err == nil {
		err = s.take(&forge.Analysis{Tasks: []forge.TaskPlan{{
			Title: s.intent.Title, Plan: in.Task, Context: in.Notes, Complexity: in.Complexity, RelevantFiles: in.RelevantFiles,
		}}}, r.Attempt.Number)
	}
	if err != nil {
		s.invalid(r, err)
		return
	}
	t := s.tasks[0]
	t.Criteria, t.loop = in.Criteria, &loop{}
	if s.intent.Type == "" {
		s.intent.Type = in.Type
	}
	s.judge(in.Risk)
	s.reason = ""
	s.decideOn(nil)
}

// checkIntake says what of an intake cannot be worked with.
func checkIntake(in *forge.Intake) error {
	switch {
	case strings.TrimSpace(in.Task) == "":
		return &forge.FieldError{Field: "task", Reason: "is empty"}
	case len(in.Criteria) == 0:
		return &forge.FieldError{Field: "criteria", Reason: "is empty; a goal has at least one"}
	case len(in.Criteria) > forge.MaxCriteria:
		return &forge.FieldError{Field: "criteria", Reason: fmt.Sprintf("has %d entries; at most %d are allowed", len(in.Criteria), forge.MaxCriteria)}
	}
	for i, c := range in.Criteria {
		if strings.TrimSpace(c) == "" || len(c) > forge.MaxCriterion {
			return &forge.FieldError{Field: fmt.Sprintf("criteria[%d]", i), Reason: fmt.Sprintf("must have 1 to %d bytes", forge.MaxCriterion)}
		}
	}
	return nil
}

// iterate begins another iteration, in a conversation of its own, or gives up after
// as many as the goal may have.
func (s *Intent) iterate(t *task) {
	l := t.loop
	if most := s.intent.Goal.Iterations(); l.used >= most {
		l.maxed = true
		why := fmt.Sprintf("the goal is not reached, and its %d iteration(s) are used up", most)
		if j := l.newest().Judgment; j != nil && !j.Complete {
			why += fmt.Sprintf(": %d of %d criteria are met", met(j), len(t.Criteria))
		} else if t.feedback != "" {
			why += ": " + firstLine(t.feedback)
		}
		s.adjust(ruleMaxIterations, t.ID, "%s", why)
		s.failTask(t, why)
		return
	}
	l.used++
	l.execution = nil
	l.iterations = append(slices.Clip(l.iterations), forge.Iteration{Number: len(l.iterations) + 1})
	s.begin(&t.talk, t.ID, forge.StepExecute)
	t.goOn = false
	s.startImplement(t)
}

// executed takes what an iteration made. That it made nothing is for the judge to see.
func (s *Intent) executed(t *task, r *forge.Result) {
	t.made(r)
	t.loop.leftover = ""
	if l := forge.As[*forge.Implementation](r.Output).Leftover; l != "" {
		t.loop.leftover = "Changes that were not committed are not part of the change. They are kept as commit " + l +
			"; take what is needed over with git cherry-pick or git checkout, and commit it."
	}
	t.feedback = t.loop.leftover
	e := bounded(forge.As[*forge.Implementation](r.Output).Execution)
	t.loop.execution = e
	it := t.loop.newest()
	it.Attempt, it.Head = r.Attempt.Number, t.Head
	for _, id := range e.Applied {
		if s.isKnown(id) {
			s.applied = append(slices.Clip(s.applied), id)
		}
	}
	if t.Head != t.Base {
		s.foresee(t, forge.As[*forge.Implementation](r.Output).Overlaps)
		s.issue(t, forge.StepRebase, stageRebasing)
		return
	}
	t.candidate = nil
	s.startSummary(t)
}

func (s *Intent) isKnown(id string) bool {
	return slices.ContainsFunc(slices.Concat(s.knows, s.learned), func(k forge.Knowledge) bool { return k.ID == id })
}

func (s *Intent) startSummary(t *task) {
	t.loop.newest().Head = t.Head
	s.begin(&t.loop.talk, t.ID, forge.StepSummarize)
	s.issue(t, forge.StepSummarize, stageSummarizing)
}

// summarized takes an iteration's summary and what it found out.
func (s *Intent) summarized(t *task, r *forge.Result) {
	t.loop.talk.heardOf(r.Session)
	for _, k := range forge.As[*forge.Summarization](r.Output).Knowledge[:min(len(forge.As[*forge.Summarization](r.Output).Knowledge), maxLearned)] {
		k.Category, k.Content, k.ExampleFile = clip(k.Category), clipped(k.Content, maxNote), clip(k.ExampleFile)
		if slices.ContainsFunc(slices.Concat(s.knows, s.learned), func(o forge.Knowledge) bool { return sameKnowledge(o, k) }) {
			continue
		}
		k.ID = fmt.Sprintf("%s/k%d", s.key.Intent, len(s.learned)+1)
		k.SourceTask, k.AppliedCount, k.CreatedAt = clip(s.intent.Title), 0, s.now
		s.learned = append(slices.Clip(s.learned), k)
	}
	s.sumUpIteration(t, forge.As[*forge.Summarization](r.Output).Summary)
}

// summarizePlainly sums an iteration up in the words of its own report.
func (s *Intent) summarizePlainly(t *task, why string) {
	s.adjust(rulePlainSummary, t.ID, "%s", firstLine(why))
	e := t.loop.execution
	s.sumUpIteration(t, forge.ExecutionSummary{Approach: e.Approach, Result: e.Status, Reason: firstLine(e.Output), Artifacts: e.Artifacts})
}

// sumUpIteration keeps a summary and goes on: to the judge, or, where the verify
// commands failed, to the next iteration.
func (s *Intent) sumUpIteration(t *task, sum forge.ExecutionSummary) {
	l := t.loop
	l.summarize.worked()
	it := l.newest()
	sum.Iteration, sum.Metadata, sum.At = it.Number, l.execution.Metadata, s.now
	boundSummary(&sum)
	it.Summary = &sum
	if v := verified(t); v != nil && !v.Passed {
		sum.Result, sum.Metadata.ErrorType = forge.ExecutionFailure, "verify_failed" // whatever the agents say
		s.rework(t, ruleVerifyFailed, verifyFeedback(v))
		return
	}
	s.startReview(t)
}

// verified is what the verify commands said of the change; nil if there is none.
func verified(t *task) *forge.VerifyReport {
	if t.candidate == nil {
		return nil
	}
	return t.candidate.Verify
}

// goalJudged takes a verdict on every criterion: the change lands, or another iteration
// begins.
func (s *Intent) goalJudged(t *task, r *forge.Result) {
	j := *forge.As[*forge.Judgment](r.Output)
	if j.Head != judgedHead(t) || !answersAll(&j, t.Criteria) {
		s.outcome(string(forge.FailInvalidOutput))
		s.failed(t, &forge.Result{Attempt: r.Attempt, Output: &forge.Failure{
			Reason: forge.FailInvalidOutput, Message: "the judgment is not about every criterion at commit " + judgedHead(t),
		}})
		return
	}
	t.review.worked()
	boundJudgment(&j)
	j.Complete = j.Complete && met(&j) == len(t.Criteria)
	t.loop.newest().Judgment = &j
	if !j.Complete {
		s.outcome("not complete")
		if t.loop.used < s.intent.Goal.Iterations() {
			s.adjust(ruleNextIteration, t.ID, "%d of %d criteria are met. %s", met(&j), len(t.Criteria), firstLine(j.NextAction))
		}
		s.iterate(t)
		return
	}
	switch {
	case t.candidate == nil:
		s.endTask(t, forge.TaskDone, "")
		s.work()
	case s.guard(t):
	default:
		s.land(t)
	}
}

// judgedHead is the commit that a judgment is of; empty where nothing was changed.
func judgedHead(t *task) string {
	if t.candidate == nil {
		return ""
	}
	return t.Head
}

func answersAll(j *forge.Judgment, criteria []string) bool {
	return slices.EqualFunc(j.Evaluations, criteria, func(e forge.Evaluation, c string) bool { return e.Criterion == c })
}

func met(j *forge.Judgment) int {
	n := 0
	for _, e := range j.Evaluations {
		if e.Met {
			n++
		}
	}
	return n
}

// lastJudgment is the newest one, or nil.
func (l *loop) lastJudgment() *forge.Judgment {
	return (&forge.GoalView{Iterations: l.iterations}).FinalJudgment()
}

// goalFor returns what a step has to know of the goal.
func (s *Intent) goalFor(t *task, step forge.Step) forge.GoalContext {
	l := t.loop
	g := forge.GoalContext{
		Iteration: len(l.iterations), Left: s.intent.Goal.Iterations() - l.used, Criteria: t.Criteria,
		Summaries: l.summaries(s.intent.Goal.History()),
	}
	if step == forge.StepJudge {
		g.Summaries = last(g.Summaries, 1)
	} else {
		g.Knowledge = slices.Concat(s.knows, last(s.learned, maxTaught))
	}
	if step == forge.StepExecute {
		g.Judgment = l.lastJudgment()
	} else {
		g.Execution = l.execution
	}
	return g
}

// summaries lists the newest ones, and before them as many of the newest that failed;
// oldest first.
func (l *loop) summaries(most int) []forge.ExecutionSummary {
	var list []forge.ExecutionSummary
	recent, failed, size := 0, 0, 0
	for _, it := range slices.Backward(l.iterations) {
		switch {
		case it.Summary == nil:
			continue
		case recent < most:
			recent++
		case failed < most && it.Summary.Result != forge.ExecutionSuccess:
			failed++
		default:
			continue
		}
		sum := *it.Summary
		sum.Metadata = forge.SummaryMetadata{ErrorType: sum.Metadata.ErrorType} // the rest is for people, and long
		if size += sizeOf(&sum); size > maxSummaries && len(list) > 0 {
			break
		}
		list = append(list, sum)
	}
	slices.Reverse(list)
	return list
}
