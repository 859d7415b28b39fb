package flow

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/claimtest"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/goal"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// FuzzTotal tells machines anything in any order: they never panic, and an
// event that is not applied leaves them as they were.
func FuzzTotal(f *testing.F) {
	for seed := range uint64(testsize.Of(15, 50)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		key := forge.Key{Project: "p", Intent: "a"}
		s, l := NewIntent(key), projects.New(key.ProjectKey())
		s2, l2 := NewIntent(key), projects.New(key.ProjectKey())
		at := time.Unix(0, 0).UTC()
		for i := range 200 {
			ev := anyEvent(rng, s, l)
			ev.ID, ev.To, ev.At = fmt.Sprint(i), key, at
			_, ruling := s.Step(rules.Newest, ev)
			if ruling.Decision == forge.Applied {
				s2.Step(rules.Newest, ev)
			}
			if !reflect.DeepEqual(s, s2) {
				t.Fatalf("event %d of the intent, %s: %+v", i, ruling.Decision, ev)
			}
			ev.To = key.ProjectKey()
			ev.Actor = string(rune('a' + rng.IntN(3)))
			_, ruling = l.Step(rules.Newest, ev)
			if ruling.Decision == forge.Applied {
				l2.Step(rules.Newest, ev)
			}
			if got, want := l.Summary(), l2.Summary(); !reflect.DeepEqual(got, want) {
				t.Fatalf("event %d of the project, %s: %+v\n%+v\n%+v", i, ruling.Decision, ev, got, want)
			}
			if got, want := l.Pending(), l2.Pending(); !reflect.DeepEqual(got, want) {
				t.Fatalf("event %d of the project, %s: %+v\n%+v\n%+v", i, ruling.Decision, ev, got, want)
			}
		}
	})
}

// anyEvent makes an event that may or may not fit: half of the results answer a
// command that is open.
func anyEvent(rng *rand.Rand, s *Intent, l *projects.Project) forge.Event {
	task := forge.NewTaskID("a", 1+rng.IntN(3))
	word := []string{"", "a", "b", "x"}[rng.IntN(4)]
	n := rng.IntN(4)
	switch rng.IntN(29) {
	case 0:
		return forge.Event{Message: &forge.Submit{Intent: forge.Intent{
			Settings: forge.Settings{
				Title:    "t",
				Body:     "b",
				Risk:     forge.Risk(word),
				Type:     []string{"", "", "audit", "skill_extraction"}[rng.IntN(4)],
				Criteria: []string{"one", "two"}[:rng.IntN(3)],
			}, Source: forge.SourceHuman,
		}}}
	case 1:
		return forge.Event{Message: &forge.Edit{Title: &word, Body: &word}}
	case 2:
		if rng.IntN(3) == 0 {
			return forge.Event{Actor: word, Message: &forge.RequestChanges{Hash: anyHash(rng, s, word), Words: word, Task: anyTask(rng, anyOne(rng, task))}}
		}
		return forge.Event{Message: &forge.Approve{}}
	case 3:
		return forge.Event{Message: &forge.Answer{Index: n - 1, Answer: []string{word, "approve"}[rng.IntN(2)]}}
	case 4:
		return forge.Event{Message: &forge.Retry{Instructions: word, BudgetUSD: float64(n - 1)}}
	case 5:
		if rng.IntN(8) == 0 {
			return forge.Event{Message: &forge.Cancel{}}
		}
		return forge.Event{Message: &forge.Reject{}}
	case 6:
		if len(s.Dispatch.Outbox.Timers) > 0 {
			tm := s.Dispatch.Outbox.Timers[rng.IntN(len(s.Dispatch.Outbox.Timers))]
			return forge.Event{Message: &forge.TimerFired{Key: tm.Key, At: tm.At}}
		}
		return forge.Event{Message: &forge.TimerFired{Key: word}}
	case 7:
		return forge.Event{Message: &forge.RunAdmitted{
			Run: n, AskFirst: rng.IntN(2) == 0, Obstacles: &forge.ObstaclesChanged{Closed: anyClosed(rng)},
			Knowledge: []forge.Knowledge{{ID: "b/k1", Content: word}}[:rng.IntN(2)],
		}}
	case 8:
		return forge.Event{Message: &forge.DependencyEnded{Run: n, Intent: "b", Status: forge.Status(word)}}
	case 9:
		return forge.Event{Message: &forge.FilesLocked{Task: task, Number: n, Granted: rng.IntN(2) == 0}}
	case 10:
		return forge.Event{Message: anyMergeEnded(rng, task, n, word)}
	case 11:
		return forge.Event{Message: &forge.AdmitRun{Run: n}}
	case 12:
		return forge.Event{Message: &forge.RunPlanned{Run: n, DependsOn: []forge.IntentID{"a", "b", "c"}[:rng.IntN(4)]}}
	case 13:
		return forge.Event{Message: &forge.QueueMerge{Run: n, Task: task, Number: rng.IntN(6), Files: []string{word}, Pull: anyPull(rng)}}
	case 14:
		return forge.Event{Message: &forge.LockFiles{Run: n, Task: task, Number: rng.IntN(6), Conflicts: []string{word}, Files: []string{word}}}
	case 15:
		if rng.IntN(2) == 0 {
			return forge.Event{Message: &forge.WithdrawRequests{Run: n, Task: task, Number: rng.IntN(6)}}
		}
		return forge.Event{Message: &forge.RunEnded{Run: n, Number: rng.IntN(6), Status: forge.StatusDone}}
	case 16:
		return forge.Event{}
	case 17:
		f := &forge.BudgetReserved{Attempt: forge.Attempt{Task: task, Step: forge.StepReview, Number: n, Claim: 1}, USD: float64(n), Reason: word}
		if len(s.Dispatch.Waiting) > 0 && rng.IntN(4) > 0 {
			w := s.Dispatch.Waiting[rng.IntN(len(s.Dispatch.Waiting))]
			f.Attempt, f.Number = w.Command.Attempt, w.Asked
		}
		return forge.Event{Message: f}
	case 18:
		return forge.Event{Message: &forge.ReserveBudget{
			Run: n, Number: rng.IntN(6), Attempt: forge.Attempt{Task: task, Number: n}, Budget: anyBudget(rng), USD: float64(rng.IntN(3)),
		}}
	case 19:
		return forge.Event{Message: &forge.CommitBudget{Number: rng.IntN(6), SpentUSD: float64(n), Open: []forge.Attempt{{Task: task, Number: n}}}}
	}
	switch rng.IntN(19) {
	case 17:
		return forge.Event{Message: &forge.ObstaclesChanged{Number: rng.IntN(30), Heard: n, Asks: n > 1, Closed: anyClosed(rng)}}
	case 18:
		return forge.Event{Message: &forge.ObstacleReported{
			Run: n, Number: rng.IntN(6), Seen: rng.IntN(6), Agent: "x", Failure: forge.Failure{Reason: forge.FailAuth, Message: word},
		}}
	case 16:
		teach := &forge.Teach{ID: []string{"", "k1", "a/k1", "b/k1"}[rng.IntN(4)]}
		if rng.IntN(3) > 0 {
			teach.Knowledge = &forge.Knowledge{Type: forge.KnowledgeLesson, Confidence: forge.ConfidenceHigh, Content: word}
		}
		return forge.Event{Message: teach}
	case 10:
		if rng.IntN(2) == 0 {
			return forge.Event{Message: &forge.PauseSchedule{Name: "x", Paused: rng.IntN(2) == 0, Reason: word}}
		}
		x := forge.Schedule{Name: "x", Cron: "*/5 * * * *", Intent: forge.Intent{Settings: forge.Settings{Title: word, Body: "b"}}}
		return forge.Event{Message: &forge.SetSchedules{Schedules: []forge.Schedule{x, {Name: word}}[:rng.IntN(3)]}}
	case 0:
		return forge.Event{Message: &forge.Pause{Task: anyTask(rng, task), Number: rng.IntN(2) * n}}
	case 1:
		return forge.Event{Message: &forge.Resume{Task: anyTask(rng, task), Number: rng.IntN(2) * n}}
	case 2:
		return forge.Event{Message: &forge.ChildChanged{Intent: anyPart(rng, s), Run: n, Number: rng.IntN(3), Status: anyStatus(rng)}}
	case 3:
		return forge.Event{Message: &forge.RunReflected{
			Run: n, Step: forge.StepRecord{Step: forge.StepReflect, Attempt: n}, Read: []string{"a/1", "a/2"}[:rng.IntN(3)],
		}}
	case 4:
		return forge.Event{Message: &forge.OverlapChanged{TaskID: task, Other: forge.Overlap{TaskID: "b-001", Files: []string{word}[:rng.IntN(2)]}}}
	case 5:
		return forge.Event{Message: &forge.Reflect{}}
	case 6:
		if rng.IntN(4) == 0 {
			return forge.Event{Message: &forge.Cancel{Task: task}}
		}
	case 7:
		return forge.Event{Message: &forge.RunEnded{
			Run: n, Number: rng.IntN(6), Status: anyStatus(rng), Parent: forge.IntentID(word), Past: &forge.PastRun{Title: "fix it"},
			Reflect: &forge.ReflectOn{Policy: forge.DefaultPolicy().Reflection}, Observed: []forge.Observation{{ID: "a/1"}},
			Knowledge: []forge.Knowledge{{ID: "a/k1", Content: word}}[:rng.IntN(2)], Applied: []string{"a/k1"}[:rng.IntN(2)],
		}}
	case 8:
		return forge.Event{Message: &forge.AdmitRun{Run: n, Title: "fix that", Parent: forge.IntentID(word), Goal: rng.IntN(2) == 0}}
	case 9:
		return forge.Event{Message: &forge.RunPlanned{Run: n, Children: []forge.IntentID{"a", "b", "x"}[:rng.IntN(4)]}}
	}
	return forge.Event{Message: anyResult(rng, s, l, task, word)}
}

// anyHash is that of what waits, or of something else.
func anyHash(rng *rand.Rand, s *Intent, word string) string {
	if rng.IntN(4) == 0 {
		return word
	}
	return s.Summary().Plan
}

// anyOne is a task, and mostly none.
func anyOne(rng *rand.Rand, task forge.TaskID) forge.TaskID {
	if rng.IntN(4) > 0 {
		return ""
	}
	return task
}

func anyClosed(rng *rand.Rand) []forge.Obstacle {
	c := forge.Obstacle{Agent: "x", Reason: forge.FailAuth}
	if rng.IntN(2) == 0 {
		c.Reason, c.Until = forge.FailQuota, time.Unix(60, 0).UTC()
	}
	return []forge.Obstacle{c}[:rng.IntN(2)]
}

func anyTask(rng *rand.Rand, task forge.TaskID) forge.TaskID {
	if rng.IntN(2) == 0 {
		return ""
	}
	return task
}

func anyPart(rng *rand.Rand, s *Intent) forge.IntentID {
	if len(s.Plan.Children) == 0 {
		return "b"
	}
	return s.Plan.Children[rng.IntN(len(s.Plan.Children))].Intent.ID
}

func anyStatus(rng *rand.Rand) forge.Status {
	return []forge.Status{forge.StatusDone, forge.StatusBlocked, forge.StatusError, forge.StatusCancelled, forge.StatusRejected}[rng.IntN(5)]
}

func anyBudget(rng *rand.Rand) forge.Budget {
	some := func() float64 { return float64(rng.IntN(3) * rng.IntN(3)) }
	return forge.Budget{IntentUSD: some(), ProjectUSD: some(), DayUSD: some(), CallUSD: some()}
}

func anyResult(rng *rand.Rand, s *Intent, l *projects.Project, task forge.TaskID, word string) *forge.Result {
	r := &forge.Result{Attempt: forge.Attempt{Task: task, Step: forge.Steps()[rng.IntN(len(forge.Steps()))], Number: rng.IntN(3), Claim: 1}}
	r.To = s.key
	r.Usage.CostUSD = float64(rng.IntN(3))
	if len(s.Dispatch.Unbilled) > 0 && rng.IntN(6) == 0 {
		r.Attempt = s.Dispatch.Unbilled[rng.IntN(len(s.Dispatch.Unbilled))]
		return r
	}
	if open := s.Dispatch.Outbox.Attempts(); len(open) > 0 && rng.IntN(4) > 0 {
		r.Attempt = open[rng.IntN(len(open))]
	} else if open := l.Summary().Open; len(open) > 0 && rng.IntN(4) > 0 {
		r.Attempt = open[rng.IntN(len(open))]
	}
	if rng.IntN(5) == 0 {
		r.Output = &forge.Failure{Reason: anyReason(rng), Until: time.Unix(int64(rng.IntN(3))*1000, 0)}
		r.Agent, r.Session = word, word
		return r
	}
	switch r.Attempt.Step {
	case forge.StepAnalyze, forge.StepArchitect:
		plans := []forge.TaskPlan{{Name: "x", Complexity: forge.ComplexityHigh}, {Name: word, DependsOn: []string{"x"}}, {}}
		out := &forge.Analysis{Risk: forge.Risk(word), Tasks: plans[:rng.IntN(4)]}
		r.Output = out
		if rng.IntN(3) == 0 {
			p := forge.DefaultPolicy()
			p.Budget, p.Fallbacks = anyBudget(rng), rng.IntN(3)
			p.Pull = anyPull(rng)
			p.StrongerImplement = []forge.Stronger{{Model: word}, {Effort: word}}[:rng.IntN(3)]
			p.BestOfTwo.When = []string{"complex", "rejected"}[:rng.IntN(3)]
			p.Second.By.Agent, p.Second.When = word, []forge.Risk{forge.RiskLow, forge.RiskMed, "x"}[:rng.IntN(4)]
			out.Policy = &p
		}
		if rng.IntN(5) == 0 {
			out.Clarifications = []forge.Clarification{{Question: word}}
		}
		if rng.IntN(5) == 0 {
			out.Tasks, out.Insufficient = nil, word
		}
		if rng.IntN(5) == 0 {
			out.Tasks = nil
			out.Children = []forge.ChildPlan{
				{Name: "x", Title: "t", Body: "b"}, {Name: word, Title: "t", Body: "b", DependsOn: []string{"x"}},
			}[:rng.IntN(3)]
		}
	case forge.StepAudit:
		r.Output = &forge.Audit{Summary: word}
	case forge.StepObserve:
		r.Output = &forge.Observed{NothingFound: word, Patterns: []forge.Pattern{{Name: word}}[:rng.IntN(2)]}
	case forge.StepAbstract:
		r.Output = &forge.Abstraction{Skills: []forge.Skill{{Name: word, Description: "d", Body: "b"}}[:rng.IntN(2)]}
	case forge.StepImplement:
		r.Output = &forge.Implementation{Commits: rng.IntN(2), Head: word, Blocked: anyQuestion(rng, word), NothingToDo: []string{"", word}[rng.IntN(2)]}
	case forge.StepRebase:
		out := &forge.Rebase{Head: word, Files: []string{word}}
		r.Output = out
		if rng.IntN(4) == 0 {
			out.Overlaps = []forge.Overlap{{TaskID: []forge.TaskID{"a-001", "a-002", "b-001"}[rng.IntN(3)], Files: []string{word}}}
		}
		if rng.IntN(3) == 0 {
			out.Conflicts = []string{word}
		}
	case forge.StepReview:
		out := &forge.Review{TaskID: r.Attempt.Task, Head: word, Verdict: []forge.Verdict{forge.VerdictApproved, forge.VerdictRejected, "maybe"}[rng.IntN(3)]}
		r.Output = out
		if t := s.Tasks.Find(r.Attempt.Task); t != nil && rng.IntN(3) > 0 {
			out.Head, out.Claims = t.Head, anyClaims(rng, t.Required())
			out.By.Agent, out.Second = word, t.Second != nil != (rng.IntN(8) == 0)
		}
	case forge.StepMerge:
		r.Output = &forge.MergeResult{Outcome: []forge.MergeOutcome{
			forge.MergeDone, forge.MergePatchChanged, forge.MergeConflict, forge.MergeDirty, forge.MergeVerifyFailed, forge.MergeRefused, forge.MergeOvertaken, "?",
			forge.MergeProposed, forge.MergeProposed, forge.MergeEdited,
		}[rng.IntN(11)], Branch: "x", BaseBranch: "main", Commit: word, Unproven: []string{"", word}[rng.IntN(2)]}
	case forge.StepIntake, forge.StepExecute, forge.StepSummarize, forge.StepJudge:
		anyProgress(rng, s, r, word)
	case forge.StepProbe:
		r.Output = &forge.Probed{}
	case forge.StepOpenPull, forge.StepMergePull:
		r.Output = anyLook(rng, word)
	case forge.StepReflect:
		proposals := []forge.Intent{{Settings: forge.Settings{Title: "fix " + word, Body: "b"}}, {Settings: forge.Settings{Title: "fix"}}}
		r.Output = &forge.Reflection{Read: []string{"a/1"}, Proposals: proposals[:rng.IntN(3)]}
	}
	return r
}

// anyPull is, now and then, the policy of a project whose changes are merged by pull requests.
func anyPull(rng *rand.Rand) *forge.PullPolicy {
	if rng.IntN(3) == 0 {
		return nil
	}
	return &forge.PullPolicy{By: []string{"forge", "people"}[rng.IntN(2)], Branch: "x"}
}

// anyLook is what a gateway may see of a pull request, or say that it saw.
func anyLook(rng *rand.Rand, word string) *forge.PullRequest {
	states := []forge.PullState{forge.PullOpen, forge.PullOpen, forge.PullMerged, forge.PullClosed, "?"}
	checks := []forge.PullCheck{
		{Name: "a", State: forge.PullCheckPassed}, {Name: "b", State: []forge.PullCheckState{forge.PullCheckPending, forge.PullCheckFailed, "?"}[rng.IntN(3)]},
	}
	reviews := []forge.PullReview{{
		Person: "ada", Account: word, May: rng.IntN(2) == 0, Commit: word,
		Verdict: []forge.PullVerdict{forge.PullApproved, forge.PullChangesRequested}[rng.IntN(2)],
	}}
	return &forge.PullRequest{
		Number: 1 + rng.IntN(8)/7, Branch: "x", Base: []string{"main", "main", "main", word}[rng.IntN(4)], Head: word, State: states[rng.IntN(len(states))],
		Checks: checks[:rng.IntN(3)], Reviews: reviews[:rng.IntN(2)], Behind: rng.IntN(3) == 0, Seen: time.Unix(int64(rng.IntN(2000)), 0).UTC(),
	}
}

// anyMergeEnded is what a project may tell of a merge.
func anyMergeEnded(rng *rand.Rand, task forge.TaskID, n int, word string) *forge.MergeEnded {
	outcomes := []forge.MergeOutcome{
		forge.MergeDone, forge.MergeClosed, forge.MergeEdited, forge.MergeProposed, forge.MergeChecksFailed, forge.MergeUnwanted, "?",
	}
	return &forge.MergeEnded{
		Task: task, Number: n, Look: rng.IntN(4), Result: &forge.MergeResult{Outcome: outcomes[rng.IntN(len(outcomes))], Commit: word, Pull: anyLook(rng, word)},
	}
}

// anyClaims answers what was asked, well or badly.
func anyClaims(rng *rand.Rand, asked []string) []forge.Claim {
	if ways := claimtest.Ways(); len(asked) > 0 && rng.IntN(4) == 0 {
		return claimtest.Lie(asked, ways[rng.IntN(len(ways))])
	}
	return claimtest.Met(asked)
}

// anyQuestion is, now and then, the question of an agent that is blocked.
func anyQuestion(rng *rand.Rand, word string) *forge.Clarification {
	if rng.IntN(4) > 0 {
		return nil
	}
	return &forge.Clarification{Question: word, Param: word, Answer: &word}
}

// anyProgress answers a step of a goal's.
func anyProgress(rng *rand.Rand, s *Intent, r *forge.Result, word string) {
	t := s.goalTask()
	switch r.Attempt.Step {
	case forge.StepIntake:
		out := &forge.Intake{Task: "t", Criteria: []string{"one", word}[:rng.IntN(3)], Risk: forge.Risk(word)}
		r.Output = out
		if rng.IntN(5) == 0 {
			out.Clarifications = []forge.Clarification{{Question: word}}
		}
	case forge.StepExecute:
		r.Output = &forge.Implementation{
			Base: "b", Head: []string{"b", word}[rng.IntN(2)], Leftover: word, Execution: &forge.Execution{}, Blocked: anyQuestion(rng, word),
		}
	case forge.StepSummarize:
		r.Output = &forge.Summarization{Knowledge: []forge.Knowledge{{Content: word}}[:rng.IntN(2)]}
	default:
		out := &forge.Judgment{Head: word, Complete: rng.IntN(2) == 0}
		r.Output = out
		if t != nil && rng.IntN(3) > 0 {
			out.Head = goal.JudgedHead(t)
			out.Claims = anyClaims(rng, t.Criteria)
		}
	}
}
