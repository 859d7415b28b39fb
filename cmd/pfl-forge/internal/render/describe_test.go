package render

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

func TestLines(t *testing.T) {
	result := func(r forge.Result) forge.Event {
		r.To, r.Duration = key, 1500*time.Millisecond
		if r.Attempt.Step == "" {
			r.Attempt = attempts(forge.StepImplement, 1)
		}
		return forge.Event{To: key, Message: &r}
	}
	merged := func(l forge.MergeEnded) forge.Event {
		l.Task = "fix-001"
		return forge.Event{To: key, Message: &l}
	}
	review := attempts(forge.StepReview, 2)
	for name, test := range map[string]struct {
		event forge.Event
		want  Line
	}{
		"submitted": {
			forge.Event{To: key, Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "A\ntitle\x1b[0m"}}}},
			Line{Who: "fix", Text: "submitted: A title"},
		},
		"submitted through a gateway": {
			forge.Event{
				To: key, Actor: "Ada", Via: "gateway", Account: "token ada",
				Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "A"}}},
			},
			Line{Who: "fix", Text: "submitted by Ada via gateway: A"},
		},
		"approved": {forge.Event{To: key, Actor: "Ada", Message: &forge.Approve{}}, Line{Who: "fix", Text: "approved by Ada"}},
		"approved through a gateway": {
			forge.Event{To: key, Actor: "Ada", Via: "gateway", Account: "token ada", Message: &forge.Approve{}},
			Line{Who: "fix", Text: "approved by Ada via gateway"},
		},
		"answered": {
			forge.Event{To: key, Message: &forge.Answer{Index: 1, Answer: "yes"}},
			Line{Who: "fix", Text: "question 2 answered: yes"},
		},
		"implemented": {
			result(forge.Result{Output: &forge.Implementation{Commits: 2, Files: []string{"a"}}, Usage: forge.Usage{CostUSD: 0.5}}),
			Line{Who: "fix-001", Text: "implement: 2 commits in 1 file (1.5s, $0.50)"},
		},
		"nothing": {
			result(forge.Result{Output: &forge.Implementation{}}),
			Line{Who: "fix-001", Text: "implement: no commit (1.5s)"},
		},
		"held for an account": {
			result(forge.Result{Agent: "codex", Output: &forge.Failure{Reason: forge.FailHeld}}),
			Line{Who: "fix-001", Text: "implement waits: the account of codex refuses calls"},
		},
		"held for the origin": {
			result(forge.Result{Output: &forge.Failure{Reason: forge.FailHeld}}),
			Line{Who: "fix-001", Text: "implement waits: the git origin does not answer"},
		},
		"failed": {
			result(forge.Result{Output: &forge.Failure{Reason: forge.FailTimeout, Message: "took too long"}}),
			Line{Who: "fix-001", Text: "implement failed (timeout): took too long", Tone: Bad},
		},
		"rejected": {
			result(forge.Result{Attempt: review, Output: &forge.Review{Verdict: forge.VerdictRejected, Issues: []string{"no test\nat all"}}}),
			Line{Who: "fix-001", Text: "review 2: rejected: no test at all (1.5s)", Tone: Bad},
		},
		"asks": {
			result(forge.Result{Attempt: review, Output: &forge.Review{Asked: []forge.CheckRun{{Name: "tests"}, {Name: "lint"}}}}),
			Line{Who: "fix-001", Text: "review 2: asks for tests, lint (1.5s)"},
		},
		"asked": {
			result(forge.Result{Attempt: attempts(forge.StepRebase, 2), Output: &forge.Rebase{Verify: &forge.VerifyReport{
				Passed: true, Checks: []forge.CheckRun{{ID: verdict.RunID(&forge.Check{Name: "tests"})}},
			}}}),
			Line{Who: "fix-001", Text: "rebase 2: asked by the reviewer, 0 of 1 check passed (1.5s)", Tone: Bad},
		},
		"approved without proof": {
			result(forge.Result{Attempt: review, Output: &forge.Review{Verdict: forge.VerdictApproved, Claims: []forge.Claim{
				{Number: 1, Met: true, Evidence: []forge.Citation{{Resolved: true}}},
				{Number: 2, Met: true, Evidence: []forge.Citation{{Reason: "the quote is not there"}}},
			}}}),
			Line{Who: "fix-001", Text: "review 2: approved, but nothing shows requirement 2: the quote is not there (1.5s)", Tone: Bad},
		},
		"conflict": {
			result(forge.Result{Attempt: attempts(forge.StepRebase, 1), Output: &forge.Rebase{Conflicts: []string{"a", "b", "c", "d"}}}),
			Line{Who: "fix-001", Text: "rebase: conflicts in a, b, c and 1 more (1.5s)", Tone: Bad},
		},
		"analyzed": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1}, Output: &forge.Analysis{NothingToDo: "it is there"}}),
			Line{Who: "fix", Text: "analyze: nothing to do: it is there (1.5s)"},
		},
		"policy": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1}, Output: &forge.Analysis{Policy: &forge.Policy{}}}),
			Line{Who: "fix", Text: "analyze: the project's policy was read (1.5s)"},
		},
		"merged": {
			merged(forge.MergeEnded{Result: &forge.MergeResult{Outcome: forge.MergeDone, Commit: "0123456789abcdef"}}),
			Line{Who: "fix-001", Text: "merged as 0123456789", Tone: Good},
		},
		"dirty": {
			merged(forge.MergeEnded{Result: &forge.MergeResult{Outcome: forge.MergeDirty, Files: []string{"a.txt"}}}),
			Line{Who: "fix-001", Text: "your working tree is in the way: a.txt", Tone: Attention},
		},
		"cycle": {
			forge.Event{To: key, Message: &forge.DependencyEnded{Intent: "other", Cycle: []forge.IntentID{"fix", "other"}}},
			Line{Who: "fix", Text: "other depends on this intent too", Tone: Bad},
		},
		"taken in": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepIntake, Number: 1}, Output: &forge.Intake{Criteria: []string{"a"}}}),
			Line{Who: "fix", Text: "intake: 1 criterion (1.5s)"},
		},
		"executed": {
			result(forge.Result{Attempt: attempts(forge.StepExecute, 2), Output: &forge.Implementation{
				Commits: 1, Files: []string{"a", "b"}, Execution: &forge.Execution{Status: forge.ExecutionSuccess, Output: "done"},
			}}),
			Line{Who: "fix-001", Text: "execute 2: success, 1 commit in 2 files (1.5s)"},
		},
		"executed in vain": {
			result(forge.Result{Attempt: attempts(forge.StepExecute, 1), Output: &forge.Implementation{
				Execution: &forge.Execution{Status: forge.ExecutionFailure},
			}}),
			Line{Who: "fix-001", Text: "execute: failure, no commit (1.5s)", Tone: Bad},
		},
		"summed up": {
			result(forge.Result{Attempt: attempts(forge.StepSummarize, 1), Output: &forge.Summarization{
				Summary: forge.ExecutionSummary{Result: forge.ExecutionSuccess, Approach: "an\nindex"}, Knowledge: make([]forge.Knowledge, 2),
			}}),
			Line{Who: "fix-001", Text: "summarize: success: an index, 2 new findings (1.5s)"},
		},
		"judged": {
			result(forge.Result{Attempt: attempts(forge.StepJudge, 1), Output: &forge.Judgment{
				Claims: []forge.Claim{{Met: true}, {Met: true, Unproven: "no evidence"}}, NextAction: "write a test",
			}}),
			Line{Who: "fix-001", Text: "judge: 1 of 2 criteria met, next: write a test (1.5s)", Tone: Bad},
		},
		"reached": {
			result(forge.Result{Attempt: attempts(forge.StepJudge, 3), Output: &forge.Judgment{
				Complete: true, Claims: []forge.Claim{{Met: true, Evidence: []forge.Citation{{Resolved: true}}}},
			}}),
			Line{Who: "fix-001", Text: "judge 3: 1 of 1 criterion met (1.5s)", Tone: Good},
		},
		"said to be reached": {
			result(forge.Result{Attempt: attempts(forge.StepJudge, 3), Output: &forge.Judgment{
				Complete: true, Claims: []forge.Claim{{Number: 1, Met: true, Evidence: []forge.Citation{{Reason: "a.txt does not exist"}}}},
			}}),
			Line{Who: "fix-001", Text: "judge 3: 1 of 1 criterion met by its word, but nothing shows criterion 1: a.txt does not exist (1.5s)", Tone: Bad},
		},
		"taken apart": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepArchitect, Number: 1}, Output: &forge.Analysis{Children: make([]forge.ChildPlan, 2)}}),
			Line{Who: "fix", Text: "architect: 2 child intents (1.5s)"},
		},
		"insufficient": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1}, Output: &forge.Analysis{Insufficient: "two ways"}}),
			Line{Who: "fix", Text: "analyze: not sufficient: two ways (1.5s)"},
		},
		"audited": {
			result(forge.Result{Attempt: forge.Attempt{Step: forge.StepAudit, Number: 1}, Output: &forge.Audit{
				Areas: []forge.AuditArea{{Findings: make([]forge.Finding, 1)}, {Findings: make([]forge.Finding, 2)}},
			}}),
			Line{Who: "fix", Text: "audit: 3 findings (1.5s)"},
		},
		"asked to be changed": {
			forge.Event{To: key, Actor: "Ada", Message: &forge.RequestChanges{Hash: "7f", Words: "shorter", Task: "fix-001"}},
			Line{Who: "fix-001", Text: "asked to be changed by Ada: shorter", Tone: Attention},
		},
		"paused": {
			forge.Event{To: key, Actor: "Ada", Message: &forge.Pause{Reason: "lunch", Task: "fix-001"}},
			Line{Who: "fix-001", Text: "paused by Ada: lunch", Tone: Attention},
		},
		"reflected": {
			forge.Event{To: key, Message: &forge.RunReflected{Proposed: []forge.Proposal{{ID: "a"}, {ID: "b"}}}},
			Line{Who: "fix", Text: "reflection proposed a, b"},
		},
		"reflection failed": {
			forge.Event{To: key, Message: &forge.RunReflected{Step: forge.StepRecord{Step: forge.StepReflect, Outcome: string(forge.FailKilled)}}},
			Line{Who: "fix", Text: "reflection failed (killed): something outside pfl-forge stopped it; fix that, then run pfl-forge reflect", Tone: Bad},
		},
		"resumed": {forge.Event{To: key, Message: &forge.Resume{}}, Line{Who: "fix", Text: "resumed"}},
		"part done": {
			forge.Event{To: key, Message: &forge.ChildChanged{Intent: "part", Status: forge.StatusDone}},
			Line{Who: "fix", Text: "child intent part is done"},
		},
		"overlap": {
			forge.Event{To: key, Message: &forge.OverlapChanged{TaskID: "fix-001", Other: forge.Overlap{TaskID: "zoo-001", Files: []string{"a"}}}},
			Line{Who: "fix-001", Text: "conflicts with zoo-001: a"},
		},
	} {
		got := Lines(&forge.Summary{Key: key}, &forge.Summary{Key: key}, &forge.Record{Events: []forge.Event{test.event}})
		if r := forge.As[*forge.Result](test.event.Message); r != nil {
			test.want.Attempt = r.Attempt
		}
		if diff := cmp.Diff([]Line{test.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLinesOfNothing(t *testing.T) {
	for name, ev := range map[string]forge.Event{
		"claimed":  {To: key, Message: &forge.Result{To: key, Attempt: attempts(forge.StepImplement, 1), Output: &forge.Started{}}},
		"timer":    {To: key, Message: &forge.TimerFired{Key: "x"}},
		"admitted": {To: key, Message: &forge.RunAdmitted{}},
		"silence":  {To: key, Message: &forge.RunReflected{Step: forge.StepRecord{Outcome: "ok"}}},
		"a part":   {To: key, Message: &forge.ChildChanged{Intent: "part", Status: forge.StatusProposed}},
		"merges":   {To: key, Message: &forge.OverlapChanged{TaskID: "fix-001", Other: forge.Overlap{TaskID: "zoo-001"}}},
	} {
		if got := Lines(&forge.Summary{Key: key}, &forge.Summary{Key: key}, &forge.Record{Events: []forge.Event{ev}}); len(got) > 0 {
			t.Errorf("%s: %v, want nothing", name, got)
		}
	}
}

// TestReasonIsSaidOnce has an intent end for the reason of the attempt that the
// line before is about, and for another one.
func TestReasonIsSaidOnce(t *testing.T) {
	before := forge.Summary{Key: key, Status: forge.StatusProposed}
	for reason, want := range map[string]string{
		"analyze: missing_cli: no such program":           "error; next: pfl-forge retry fix",
		"analyze: missing_cli: no such program\nand more": "error; next: pfl-forge retry fix",
		"gave up after 3 attempts":                        "error: gave up after 3 attempts",
		"another: it is no such program":                  "error: another: it is no such program",
	} {
		after := forge.Summary{Key: key, Status: forge.StatusError, Waiting: forge.WaitingFailed, Reason: reason}
		got := Lines(&before, &after, &forge.Record{Events: []forge.Event{{To: key, Message: &forge.Result{
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1},
			Output:  &forge.Failure{Reason: forge.FailMissingCLI, Message: "no such program"},
		}}}})
		if len(got) != 2 || got[1].Text != want {
			t.Errorf("%s: got %v, want a line about the attempt, and %q", reason, got, want)
		}
	}
}

func TestLinesOfTurns(t *testing.T) {
	for want, after := range map[string]forge.Summary{
		"done ($1.00)":           {Status: forge.StatusDone, Usage: forge.Usage{CostUSD: 1}},
		"blocked: a task failed": {Status: forge.StatusBlocked, Waiting: forge.WaitingFailed, Reason: "a task failed"},
		"needs your approval: high risk": {
			Status: forge.StatusProposed, Waiting: forge.WaitingApproval,
			RunSummary: forge.RunSummary{Activity: "needs your approval"}, Reason: "high risk",
		},
		"waits for other": {Status: forge.StatusProposed, RunSummary: forge.RunSummary{Activity: "waits for other"}},
	} {
		after.Key = key
		got := Lines(&forge.Summary{Key: key, Status: forge.StatusProposed}, &after, &forge.Record{})
		if len(got) != 1 || got[0].Text != want {
			t.Errorf("got %v, want %q", got, want)
		}
		if again := Lines(&after, &after, &forge.Record{}); len(again) > 0 {
			t.Errorf("told again: %v", again)
		}
	}
}

// A repetition of what was submitted is in a journal only where it has another text.
func TestLinesOfALaterText(t *testing.T) {
	key := forge.Key{Project: "shop", Intent: "fix"}
	other := forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "Other"}}}
	rec := forge.Record{Events: []forge.Event{{To: key, Actor: "scanner", Message: &other}}}
	known := forge.Summary{Key: key, Status: forge.StatusExecuting}
	want := []Line{{Who: "fix", Text: "its text was edited at scanner; what was taken before is worked on", Tone: Attention}}
	if got := Lines(&known, &known, &rec); !slices.Equal(got, want) {
		t.Errorf("it is told as %+v", got)
	}
	rec.Events = append([]forge.Event{{To: key, Actor: "scanner", Message: &forge.Submit{}}}, rec.Events...)
	if got := Lines(&forge.Summary{}, &known, &rec); len(got) != 2 || got[1] != want[0] {
		t.Errorf("decided in one record with the first it is told as %+v", got)
	}
}

// Comments are no edit of the text: the line says whose they are and where, and
// nothing that was written.
func TestLineOfComments(t *testing.T) {
	key := forge.Key{Project: "shop", Intent: "fix"}
	told := forge.Submit{Comments: &forge.Comments{Count: 2, Account: "work account 5 eve", Ref: "shop#3 comment 7"}}
	rec := forge.Record{Events: []forge.Event{{To: key, Actor: "work", Message: &told}}}
	known := forge.Summary{Key: key, Status: forge.StatusExecuting}
	want := []Line{{Who: "fix", Text: "comment by work account 5 eve: shop#3 comment 7", Tone: Attention}}
	if got := Lines(&known, &known, &rec); !slices.Equal(got, want) {
		t.Errorf("it is told as %+v", got)
	}
}
