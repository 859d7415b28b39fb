// Package goal is the strategy of the one task that a goal has: iterations until
// every completion criterion is met. Each iteration executes, is put on the base
// branch's tip and verified there, is summed up, and judged criterion by criterion:
//
//	execute -> rebase and verify -> summarize -> judge -> merge
//	   ^                               |           |
//	   +-------- verify failed --------+-----------+ not every criterion is met
//
// Criteria that a command decides are decided where the change is verified. Where one of them is
// not met, no judge is asked; otherwise the judge is asked for the others, if there are any.
//
// What agents found out on the way is kept as knowledge, which the project is told
// of when the run ends.
package goal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/cause"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/retry"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// State is how far a goal is. Iterations, Learned and Applied are of all runs.
type State struct {
	// Started says that the intent is a goal that was taken in.
	Started bool
	// Iterations are of all runs, oldest first.
	Iterations []forge.Iteration
	// Used counts the iterations of this run.
	Used int
	// Maxed says that this run used up its iterations.
	Maxed bool
	// Execution is the report of the newest iteration; nil before there is one.
	Execution *forge.Execution
	// Leftover tells the next execution of changes that were not committed.
	Leftover string
	// Summarize counts the attempts of summarize.
	Summarize retry.Counter
	// Session is about the newest summary.
	Session session.Session

	// Known is the knowledge that the project sent when it admitted the run.
	Known []forge.Knowledge
	// Learned is the knowledge that this goal found.
	Learned []forge.Knowledge
	// Applied has the ids of knowledge that helped, once for each execution.
	Applied []string
	// SentLearned is how many of Learned the project was told of.
	SentLearned int
	// SentApplied is how many of Applied the project was told of.
	SentApplied int
}

// Table lists the ways of a goal's task.
var Table = slices.Concat(task.Table{
	{From: task.Pending, On: task.Ready, To: task.Implementing},
	{From: task.Implementing, On: task.Committed, To: task.Rebasing},
	{From: task.Implementing, On: task.Nothing, To: task.Rebasing},
	{From: task.Rebasing, On: task.Verified, To: task.Summarizing},
	{From: task.Rebasing, On: task.VerifyFailed, To: task.Summarizing},
	{From: task.Rebasing, On: task.BaseRed, To: task.Red}, // of one that was reached
	{From: task.Rebasing, On: task.Combination, To: task.Locking, Rule: rule.Combination},
	{From: task.Rebasing, On: task.Conflict, To: task.Locking},
	{From: task.Summarizing, On: task.Summarized, To: task.Reviewing},
	{From: task.Summarizing, On: task.VerifyFailed, To: task.Implementing, Rule: rule.VerifyFailed, Spends: true},
	{From: task.Summarizing, On: task.Rejected, To: task.Implementing, Rule: rule.NextIteration, Spends: true},
	{From: task.Reviewing, On: task.Approved, To: task.Merging},
	{From: task.Reviewing, On: task.Unchanged, To: task.Done},
	{From: task.Reviewing, On: task.Rejected, To: task.Implementing, Rule: rule.NextIteration, Spends: true},
}, task.Merges)

// Strategy is the strategy of a goal's task. It spends iterations.
type Strategy struct {
	*State
	Options *forge.GoalOptions
}

// Table returns the ways of a goal's task.
func (Strategy) Table() task.Table { return Table }

// Step returns the step of a stage.
func (Strategy) Step(s task.Stage) forge.Step {
	switch s {
	case task.Implementing:
		return forge.StepExecute
	case task.Rebasing:
		return forge.StepRebase
	case task.Summarizing:
		return forge.StepSummarize
	case task.Reviewing:
		return forge.StepJudge
	default:
		return ""
	}
}

// Counter returns the attempts of a step.
func (g Strategy) Counter(t *task.Task, step forge.Step) *retry.Counter {
	if step == forge.StepSummarize {
		return &g.Summarize
	}
	return task.Change{}.Counter(t, step)
}

// Session returns the session about a step.
func (g Strategy) Session(t *task.Task, step forge.Step) *session.Session {
	if step == forge.StepSummarize {
		return &g.State.Session
	}
	return task.Change{}.Session(t, step)
}

// Enter notes the commit that an iteration is summed up at.
func (g Strategy) Enter(t *task.Task, to task.Stage) {
	if to == task.Summarizing {
		g.newest().Head = t.Head
	}
}

// Begin begins another iteration, in a session of its own. The task fails after as
// many as the goal may have in one run.
func (g Strategy) Begin(x *task.Turn, t *task.Task, row task.Row, in task.Input) string {
	most := g.Options.Iterations()
	switch {
	case row.On == task.Rejected && g.Used < most:
		if in.Feedback != "" {
			t.Feedback = strings.TrimSpace(in.Feedback + "\n\n" + g.Leftover)
		}
		x.Adjust(row.Rule, t.ID, in.Detail)
	case row.On == task.Rejected:
	case row.Spends:
		t.Feedback = strings.TrimSpace(in.Feedback + "\n\n" + g.Leftover)
		x.Adjust(row.Rule, t.ID, cause.Gist(in.Feedback))
	}
	// What a person asks for of a goal that was reached is no iteration more of
	// those that it may take to reach it. At a pull request it is one.
	asked := row.On == task.ChangesWanted && row.From != task.Merging
	if g.Used >= most && !asked {
		return g.usedUp(x, t, most)
	}
	if row.On == task.VerifyFailed { // a criterion that is not met yet is how a goal goes on, and no setback
		task.Escalation{Task: t}.Setback(x)
	}
	if !asked {
		g.Used++
	}
	g.Execution = nil
	g.Iterations = append(slices.Clip(g.Iterations), forge.Iteration{Number: len(g.Iterations) + 1})
	t.Session.Start(x.Names, t.ID, forge.StepExecute)
	t.Continue = false
	return ""
}

// usedUp ends the goal in this run, and returns why.
func (g Strategy) usedUp(x *task.Turn, t *task.Task, most int) string {
	g.Maxed = true
	why := "the goal is not reached after " + rule.Count(most, "iteration")
	if j := g.newest().Judgment; j != nil && !j.Complete {
		why += fmt.Sprintf(": %d of %d criteria are met", met(j), len(t.Criteria))
	} else if t.Feedback != "" {
		why += ": " + cause.Gist(t.Feedback)
	}
	x.Adjust(rule.MaxIterations, t.ID, why)
	return why
}

// GaveUp sums an iteration up in the words of its own report when no agent does.
func (g Strategy) GaveUp(x *task.Turn, t *task.Task, step forge.Step, why string) bool {
	if step != forge.StepSummarize {
		return false
	}
	x.Adjust(rule.PlainSummary, t.ID, rule.FirstLine(why))
	e := g.Execution
	g.sumUp(x, t, forge.ExecutionSummary{Approach: e.Approach, Result: e.Status, Reason: rule.FirstLine(e.Output), Artifacts: e.Artifacts})
	return true
}

// Executed takes the change of an iteration. An iteration without a change is
// verified, summarized and judged like the others, on the tip of the base branch.
func (g Strategy) Executed(x *task.Turn, t *task.Task, im *forge.Implementation, by task.Worker) {
	t.Made(im, by)
	if said := (task.Said{Task: t}); said.Blocked(x, forge.StepExecute, im.Blocked) {
		return
	}
	g.Leftover = ""
	if l := im.Leftover; l != "" {
		g.Leftover = "Changes that were not committed are not part of the change. They are kept as commit " + l +
			"; restore what you need with git cherry-pick or git checkout, and commit it."
	}
	t.Feedback = g.Leftover
	g.Execution = bounded(im.Execution)
	it := g.newest()
	it.Attempt, it.Head = t.Implement.Number, t.Head
	for _, id := range g.Execution.Applied {
		if slices.ContainsFunc(g.knowledge(), func(k forge.Knowledge) bool { return k.ID == id }) {
			g.Applied = append(slices.Clip(g.Applied), id)
		}
	}
	if t.Head != t.Base {
		t.ReportOverlaps(x, im.Overlaps)
		t.Happened(x, task.Input{On: task.Committed})
		return
	}
	t.Candidate = nil
	t.Happened(x, task.Input{On: task.Nothing})
}

// Summarized takes an iteration's summary and what it found out.
func (g Strategy) Summarized(x *task.Turn, t *task.Task, sum *forge.Summarization, session string) {
	g.State.Session.Reported(session)
	for _, k := range sum.Knowledge[:min(len(sum.Knowledge), maxLearned)] {
		k.Category, k.Content, k.ExampleFile = clip(k.Category), clipped(k.Content, maxText), clip(k.ExampleFile)
		if slices.ContainsFunc(g.knowledge(), func(o forge.Knowledge) bool { return rule.SameKnowledge(o, k) }) {
			continue
		}
		k.ID = fmt.Sprintf("%s/k%d", x.Intent.ID, len(g.Learned)+1)
		k.SourceTask, k.AppliedCount, k.CreatedAt = clip(x.Intent.Title), 0, x.Now
		g.Learned = append(slices.Clip(g.Learned), k)
	}
	g.sumUp(x, t, sum.Summary)
}

// sumUp keeps a summary and goes on: to the judge, or, where the verify commands
// failed, to the next iteration.
func (g Strategy) sumUp(x *task.Turn, t *task.Task, sum forge.ExecutionSummary) {
	g.Summarize.Worked()
	it := g.newest()
	sum.Iteration, sum.Metadata, sum.At = it.Number, g.Execution.Metadata, x.Now
	boundSummary(&sum)
	it.Summary = &sum
	if v := verified(t); v != nil && task.Broken(t.Candidate) {
		sum.Result, sum.Metadata.ErrorType = forge.ExecutionFailure, "verify_failed" // whatever the agents say
		feedback := task.VerifyFeedback(v)
		if Unchanged(t) {
			feedback += "\n\nNothing was changed: that is how it fails on the base branch."
		}
		t.Happened(x, task.Input{On: task.VerifyFailed, Feedback: feedback})
		return
	}
	if claims := checked(t); slices.ContainsFunc(claims, func(c forge.Claim) bool { return !c.Counts() }) {
		g.unchecked(x, t, claims)
		return
	}
	t.Happened(x, task.Input{On: task.Summarized})
}

// Judged takes a judgment, of which the rules make the verdict: the goal is complete if
// every criterion is shown to be met and the judge says that it is. It returns why the
// judgment is none of this change; then nothing has happened.
func (g Strategy) Judged(x *task.Turn, t *task.Task, judgment *forge.Judgment) error {
	j := *judgment
	if j.Head != JudgedHead(t) {
		return fmt.Errorf("the judgment is not about commit %s", JudgedHead(t))
	}
	t.Review.Worked()
	j.Claims = append(renumbered(t, j.Claims), checked(t)...)
	Decide(&j, t.Criteria, x.Policy.MinConfidence)
	boundJudgment(&j)
	g.newest().Judgment = &j
	switch {
	case !j.Complete:
		x.Correct("not complete")
		t.Happened(x, task.Input{On: task.Rejected, Detail: fmt.Sprintf(
			"%d of %d criteria are met. %s", met(&j), len(t.Criteria), rule.FirstLine(j.NextAction))})
	case Unchanged(t):
		t.Happened(x, task.Input{On: task.Unchanged})
	default:
		t.Approved(x)
	}
	return nil
}

// Statement returns the signed statement of the newest judgment; empty if there is none.
func (s *State) Statement() forge.Envelope {
	n := len(s.Iterations)
	if n == 0 || s.Iterations[n-1].Judgment == nil {
		return ""
	}
	return s.Iterations[n-1].Judgment.Statement
}

// Retry begins another run.
func (s *State) Retry() {
	s.Used, s.Maxed = 0, false
	s.Summarize.Worked()
}

// Publish returns the knowledge that the run found and the ids of the knowledge that
// helped it, each once: the project is told.
func (s *State) Publish() ([]forge.Knowledge, []string) {
	learned, applied := rule.Last(s.Learned[s.SentLearned:], maxPublished), s.Applied[s.SentApplied:]
	s.SentLearned, s.SentApplied = len(s.Learned), len(s.Applied)
	return learned, applied
}

// newest returns the iteration under way for changes. What views of the state
// before show stays as it was.
func (s *State) newest() *forge.Iteration {
	s.Iterations = slices.Clone(s.Iterations)
	return &s.Iterations[len(s.Iterations)-1]
}

// knowledge returns all that the project sent and the goal found.
func (s *State) knowledge() []forge.Knowledge { return slices.Concat(s.Known, s.Learned) }

// verified returns the report of the verify commands on the change, or on the base branch
// where nothing was changed; nil before they ran, and where none are configured.
func verified(t *task.Task) *forge.VerifyReport {
	if t.Candidate == nil {
		return nil
	}
	return t.Candidate.Verify
}

// JudgedHead returns the commit that a judgment is of; empty where nothing was
// changed.
func JudgedHead(t *task.Task) string {
	if Unchanged(t) {
		return ""
	}
	return t.Head
}

// Unchanged reports whether the goal's task has changed nothing so far. What was verified then
// is the base branch.
func Unchanged(t *task.Task) bool { return t.Candidate == nil || t.Candidate.Head == t.Candidate.Base }

// Decide makes a judgment complete if its claims show that every criterion is met. Otherwise
// its next action begins with the reasons that are not the judge's own words.
func Decide(j *forge.Judgment, criteria []string, least float64) {
	var unmet, why []string
	j.Claims, unmet, why = rule.Verdict("Criterion", criteria, j.Claims, least)
	if !j.Complete && len(unmet)+len(why) == 0 {
		why = append(why, "Every criterion is shown to be met, and the judge says that the goal is not reached: "+j.Reason)
	}
	if j.Complete = len(unmet)+len(why) == 0; j.Complete {
		j.NextAction = ""
		return
	}
	if j.NextAction == "" {
		why = append(unmet, why...)
	}
	j.NextAction = strings.TrimSpace(j.NextAction + "\n" + strings.Join(why, "\n"))
}

// met counts the criteria that are met.
func met(j *forge.Judgment) int {
	n := 0
	for i := range j.Claims {
		if j.Claims[i].Counts() {
			n++
		}
	}
	return n
}

var _ task.Strategy = Strategy{}

// Begin takes the plan of an intent. What was done for an earlier plan is forgotten;
// what was learned is not.
func (s *State) Begin(isGoal bool) {
	*s = State{
		Started: isGoal, Known: s.Known, Learned: s.Learned, Applied: s.Applied, SentLearned: s.SentLearned, SentApplied: s.SentApplied,
	}
}
