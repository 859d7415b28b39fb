package health

import (
	"fmt"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document/figures"
)

// monday is one, and noon the noon after it.
var (
	monday = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	noon   = monday.Add(12 * time.Hour)
	intent = forge.Key{Project: "shop", Intent: "a"}
)

// tells adds a record of an intent at a time after noon.
func tells(l *Ledger, after time.Duration, state forge.Summary, eff forge.Effects, list ...forge.Message) {
	tellsOf(l, intent, after, state, eff, list...)
}

// tellsOf adds a record of any intent.
func tellsOf(l *Ledger, key forge.Key, after time.Duration, state forge.Summary, eff forge.Effects, list ...forge.Message) {
	rec := forge.Record{Summary: state, Effects: eff}
	for _, m := range list {
		rec.Events = append(rec.Events, forge.Event{At: noon.Add(after), Message: m})
	}
	if len(list) == 0 {
		rec.Events = []forge.Event{{At: noon.Add(after)}}
	}
	l.Add(key, &rec)
}

// issued returns the effect that a command is issued.
func issued(a forge.Attempt) forge.Effects {
	return forge.Effects{Commands: []forge.Command{{Attempt: a}}}
}

// TestLedger: each attempt, wait and end counts once, in the week in which it
// ended, whatever is repeated or comes too late.
func TestLedger(t *testing.T) {
	var l Ledger
	working := forge.Summary{Status: forge.StatusExecuting}
	a := forge.Attempt{Task: "a-001", Step: forge.StepImplement, Number: 1, Claim: 1}
	made := &forge.Result{Attempt: a, StartedAt: noon.Add(10 * time.Second), Duration: 30 * time.Second, Output: &forge.Implementation{Commits: 1}}
	tells(&l, 0, working, issued(a))
	tells(&l, time.Second, working, issued(a)) // a repetition after a crash
	tells(&l, 60*time.Second, working, forge.Effects{}, made)
	tells(&l, 70*time.Second, working, forge.Effects{}, made) // comes twice
	review := forge.Attempt{Task: "a-001", Step: forge.StepReview, Number: 1, Claim: 1}
	tells(&l, 70*time.Second, working, issued(review))
	rejected := &forge.Result{
		Attempt: review, StartedAt: noon.AddDate(-1, 0, 0), Duration: 1000 * time.Hour, Output: &forge.Review{Verdict: forge.VerdictRejected},
	}
	tells(&l, 80*time.Second, working, forge.Effects{}, rejected)
	again := a
	again.Number = 2
	tells(&l, 80*time.Second, working, issued(again))
	moved := again
	moved.Claim = 2
	tells(&l, 90*time.Second, working, issued(moved))
	late := &forge.Result{Attempt: again, StartedAt: noon, Duration: time.Second, Output: &forge.Implementation{Commits: 1}}
	tells(&l, 91*time.Second, working, forge.Effects{}, late) // of a claim that was given up
	tells(&l, 100*time.Second, working, forge.Effects{}, &forge.Result{
		Attempt: moved, StartedAt: noon.Add(95 * time.Second), Duration: 5 * time.Second, Output: &forge.Implementation{Commits: 1},
	})
	void := forge.Attempt{Task: "a-002", Step: forge.StepImplement, Number: 1, Claim: 1}
	tells(&l, 100*time.Second, working, issued(void))
	tells(&l, 101*time.Second, working, forge.Effects{Cancels: []forge.Attempt{void}})
	asks := forge.Effects{Outbox: []forge.Event{{Message: &forge.QueueMerge{Task: "a-001", Number: 1}}}}
	tells(&l, 110*time.Second, working, asks)
	tells(&l, 115*time.Second, working, asks)
	answer := &forge.MergeEnded{Task: "a-001", Number: 1, Result: &forge.MergeResult{Outcome: forge.MergeConflict}}
	tells(&l, 130*time.Second, working, forge.Effects{}, answer)
	lock := forge.Effects{Outbox: []forge.Event{{Message: &forge.LockFiles{Task: "a-001", Number: 2}}}}
	tells(&l, 130*time.Second, working, lock)
	tells(&l, 135*time.Second, working, forge.Effects{}, &forge.FilesLocked{Task: "a-001", Number: 2})
	tells(&l, 135*time.Second, working, asks)
	withdraws := forge.Effects{Outbox: []forge.Event{{Message: &forge.WithdrawRequests{Task: "a-001", Number: 3}}}}
	tells(&l, 140*time.Second, working, withdraws)
	tells(&l, 150*time.Second, working, forge.Effects{}, answer) // the one that was withdrawn
	waits := working
	for i, w := range []forge.Waiting{forge.WaitingApproval, forge.WaitingBudget, forge.WaitingPull, ""} {
		waits.Waiting = w
		tells(&l, time.Duration(200+100*i)*time.Second, waits, forge.Effects{})
	}
	tells(&l, 600*time.Second, forge.Summary{Status: forge.StatusDone}, forge.Effects{})
	l.Add(forge.Key{Project: "shop"}, &forge.Record{Events: []forge.Event{{At: noon, Message: made}}})
	h := l.Health(figures.HealthRequest{Weeks: 2}, noon.AddDate(0, 0, 7))
	if len(h.Weeks) != 2 || h.Weeks[0].Week != "2026-11-30" || h.Weeks[1].Week != "2026-12-07" || len(h.Weeks[1].Steps) > 0 {
		t.Fatalf("%+v", h.Weeks)
	}
	w := h.Weeks[0]
	got := fmt.Sprint(w.Done, w.Failed, w.Rejected, w.Cancelled, w.Made, w.MadeAgain, w.ReviewsRejected, w.VerifyFailed, w.Conflicts)
	if got != "1 0 0 0 2 1 1 0 1" {
		t.Errorf("counted %s", got)
	}
	if got := fmt.Sprint(w.Steps); got != "[{implement 2 5 30 30} {review 1 10 10 10}]" {
		t.Errorf("the steps are %s", got)
	}
	const want = "[{budget 1 100 100 100} {forge 1 100 100 100} {locks 1 5 5 5} {merge_queue 1 20 20 20} {person 1 100 100 100} {queue 4 5 10 10}]"
	if got := fmt.Sprint(w.Waits); got != want {
		t.Errorf("the waits are %s, want %s", got, want)
	}
	if got, all := fmt.Sprint(h.Total), w; true {
		all.Week = ""
		if got != fmt.Sprint(all) {
			t.Errorf("all is %s", got)
		}
	}
	if u := l.known[intent]; u.asked != nil || u.made != nil || len(l.known) != 1 {
		t.Errorf("more than the status is kept of an intent that is over: %+v", u)
	}
}

// TestEnds: a run counts once when it has ended, whatever its journal says afterwards,
// one that failed also while it waits for a person, and a retry is another one.
func TestEnds(t *testing.T) {
	var l Ledger
	for i, s := range []forge.Summary{
		{Status: forge.StatusProposed},
		{Status: forge.StatusError, Waiting: forge.WaitingFailed},
		{Status: forge.StatusError, Waiting: forge.WaitingFailed},
		{Status: forge.StatusExecuting},
		{Status: forge.StatusBlocked, Waiting: forge.WaitingFailed},
		{Status: forge.StatusExecuting},
		{Status: forge.StatusCancelled},
		{Status: forge.StatusCancelled},
		{Status: forge.StatusExecuting},
		{Status: forge.StatusRejected},
		{Status: forge.StatusExecuting},
		{Status: forge.StatusDone},
		{Status: forge.StatusDone}, // its reflection, a late cost
		{Status: forge.StatusDone},
	} {
		tells(&l, time.Duration(i)*time.Minute, s, forge.Effects{})
	}
	h := l.Health(figures.HealthRequest{Weeks: 1}, noon)
	if w := h.Weeks[0]; w.Done != 1 || w.Failed != 2 || w.Cancelled != 1 || w.Rejected != 1 || w.Ended() != 5 {
		t.Errorf("%+v", w)
	}
	if got := fmt.Sprint(h.Weeks[0].Waits); got != "[{person 2 60 120 120}]" {
		t.Errorf("the waits are %s", got)
	}
}

// TestWeeks: a week begins on Monday in UTC, and those that are too old are forgotten.
func TestWeeks(t *testing.T) {
	for at, want := range map[time.Time]string{
		monday: "2026-11-30", monday.Add(-time.Nanosecond): "2026-11-23", monday.AddDate(0, 0, 6): "2026-11-30", monday.AddDate(0, 0, 7): "2026-12-07",
		monday.In(time.FixedZone("west", -3600)): "2026-11-30",
	} {
		if got := weekOf(at).Format(time.DateOnly); got != want {
			t.Errorf("%s is in the week of %s, want %s", at, got, want)
		}
	}
	l := Ledger{Keep: 3}
	for i := range 10 {
		key := forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprintf("i%d", i))}
		tellsOf(&l, key, time.Duration(7*24*i)*time.Hour, forge.Summary{Status: forge.StatusDone}, forge.Effects{})
	}
	h := l.Health(figures.HealthRequest{Weeks: figures.MostHealthWeeks}, noon.AddDate(0, 0, 63))
	if len(l.weeks) != 3 || h.Total.Done != 3 || len(h.Weeks) != 26 {
		t.Errorf("%d weeks, %+v", len(l.weeks), h.Total)
	}
}

// TestPercentiles: each is one of the durations, and there is one for few as well.
func TestPercentiles(t *testing.T) {
	list := make([]time.Duration, 100)
	for i := range list {
		list[i] = time.Duration(100-i) * time.Second
	}
	if got := figures.DurationsOf("x", list); got != (figures.Durations{Key: "x", Count: 100, P50: 50, P90: 90, P99: 99}) {
		t.Errorf("%+v", got)
	}
	for n, want := range map[int]string{0: "{x 0 0 0 0}", 1: "{x 1 1 1 1}", 2: "{x 2 1 2 2}", 3: "{x 3 2 3 3}"} {
		var some []time.Duration
		for i := range n {
			some = append(some, time.Duration(i+1)*time.Second)
		}
		if got := fmt.Sprint(figures.DurationsOf("x", some)); got != want {
			t.Errorf("of %d: %s, want %s", n, got, want)
		}
	}
}

// TestRework: a change is made again if its task had one, also in another run;
// an attempt that crashed, committed nothing or asks is none.
func TestRework(t *testing.T) {
	var l Ledger
	working, n := forge.Summary{Status: forge.StatusExecuting}, 0
	for _, one := range []struct {
		task        forge.TaskID
		output      forge.Output
		made, again int
	}{
		{"a-001", &forge.Failure{Reason: forge.FailCrashed}, 0, 0},
		{"a-001", &forge.Implementation{}, 0, 0},
		{"a-001", &forge.Implementation{Unchanged: true}, 0, 0},
		{"a-001", &forge.Implementation{Commits: 1, Blocked: &forge.Clarification{}}, 0, 0},
		{"a-001", &forge.Implementation{Commits: 1}, 1, 0},
		{"a-002", &forge.Implementation{Commits: 1}, 2, 0},
		{"a-001", &forge.Implementation{Commits: 2}, 3, 1},
		{"", nil, 3, 1}, // the run is cancelled, and retried
		{"a-001", &forge.Implementation{Commits: 2}, 4, 2},
	} {
		if n++; one.output == nil {
			tells(&l, 0, forge.Summary{Status: forge.StatusCancelled}, forge.Effects{})
			continue
		}
		a := forge.Attempt{Task: one.task, Step: forge.StepImplement, Number: n, Claim: 1}
		tells(&l, 0, working, issued(a))
		tells(&l, time.Second, working, forge.Effects{}, &forge.Result{Attempt: a, Duration: time.Second, Output: one.output})
		if w := l.Health(figures.HealthRequest{Weeks: 1}, noon).Total; w.Made != one.made || w.MadeAgain != one.again {
			t.Errorf("after attempt %d: %d made, %d again, want %d, %d", n, w.Made, w.MadeAgain, one.made, one.again)
		}
	}
}

// TestSecondOfTwo: the second of two changes that code chooses from is made,
// and not made again, also if it takes several attempts; what goes on after the
// choice, starts over after a conflict, or in another run, is made again.
func TestSecondOfTwo(t *testing.T) {
	var l Ledger
	n := 0
	makes := func(run int, fresh bool, out forge.Output, before ...forge.Message) string {
		n++
		a := forge.Attempt{Task: "a-001", Step: forge.StepImplement, Number: n, Claim: 1}
		eff := issued(a)
		eff.Commands[0].Input = &forge.ImplementInput{Fresh: fresh}
		working := forge.Summary{Status: forge.StatusExecuting, RunSummary: forge.RunSummary{Run: run}}
		tells(&l, 0, working, eff, before...)
		tells(&l, time.Second, working, forge.Effects{}, &forge.Result{Attempt: a, Duration: time.Second, Output: out})
		w := l.Health(figures.HealthRequest{Weeks: 1}, noon).Total
		return fmt.Sprint(w.Made, " ", w.MadeAgain)
	}
	made := &forge.Implementation{Commits: 1}
	for _, one := range []struct{ about, got, want string }{
		{"the first", makes(1, false, made), "1 0"},
		{"the second, which crashes", makes(1, true, &forge.Failure{Reason: forge.FailCrashed}), "1 0"},
		{"the second", makes(1, true, made), "2 0"},
		{"the one that was chosen", makes(1, false, made), "3 1"},
		{"after a conflict", makes(1, true, made, &forge.FilesLocked{Task: "a-001", Number: 1}), "4 2"},
		{"in another run", makes(2, true, made), "5 3"},
		{"the second of that", makes(2, true, made), "6 3"},
	} {
		if one.got != one.want {
			t.Errorf("%s: %s made and made again, want %s", one.about, one.got, one.want)
		}
	}
}

// TestStepsOfTheProject: merges, their trials and looks at pull requests count
// as steps with the time that a worker took, each once; what was given up does
// not, and neither does the time for which an origin was away.
func TestStepsOfTheProject(t *testing.T) {
	var l Ledger
	key := forge.Key{Project: "shop"}
	attempt := func(task forge.TaskID, step forge.Step, claim int) forge.Attempt {
		return forge.Attempt{Task: task, Step: step, Number: 1, Claim: claim}
	}
	asks := func(after time.Duration, a forge.Attempt, in forge.Input) {
		tellsOf(&l, key, after, forge.Summary{}, forge.Effects{Commands: []forge.Command{{Attempt: a, Input: in}}})
	}
	ends := func(after, took time.Duration, a forge.Attempt) {
		for range 2 { // it comes twice
			tellsOf(&l, key, after, forge.Summary{}, forge.Effects{}, &forge.Result{
				Attempt: a, StartedAt: noon.Add(after - took), Duration: took, Output: &forge.MergeResult{Outcome: forge.MergeDone},
			})
		}
	}
	trial, merge := &forge.MergeInput{Change: &forge.QueueMerge{}, Trial: true}, &forge.MergeInput{Change: &forge.QueueMerge{}}
	asks(0, attempt("a-001", forge.StepMerge, 1), trial)
	ends(60*time.Second, 50*time.Second, attempt("a-001", forge.StepMerge, 1))
	asks(60*time.Second, attempt("a-001", forge.StepMerge, 2), merge)
	ends(70*time.Second, 4*time.Second, attempt("a-001", forge.StepMerge, 2))
	asks(70*time.Second, attempt("b-001", forge.StepMerge, 1), trial)
	asks(75*time.Second, attempt("b-001", forge.StepMerge, 2), merge) // its merge comes before the trial has ended
	ends(76*time.Second, 5*time.Second, attempt("b-001", forge.StepMerge, 1))
	ends(90*time.Second, 6*time.Second, attempt("b-001", forge.StepMerge, 2))
	asks(90*time.Second, attempt("c-001", forge.StepMerge, 1), trial)
	tellsOf(&l, key, 95*time.Second, forge.Summary{}, forge.Effects{Cancels: []forge.Attempt{attempt("c-001", forge.StepMerge, 1)}})
	asks(95*time.Second, attempt("d-001", forge.StepOpenPull, 1), &forge.PullInput{})
	ends(98*time.Second, 2*time.Second, attempt("d-001", forge.StepOpenPull, 1))
	asks(98*time.Second, attempt("", forge.StepProbe, 1), &forge.ProbeInput{})
	ends(time.Hour, 30*time.Minute, attempt("", forge.StepProbe, 1))
	h := l.Health(figures.HealthRequest{Weeks: 1}, noon.Add(2*time.Hour))
	if got := fmt.Sprint(h.Total.Steps, h.Total.Waits); got != "[{merge 2 4 6 6} {merge_trial 1 50 50 50} {open_pull 1 2 2 2}] []" {
		t.Errorf("the steps and waits are %s", got)
	}
	if len(l.project.trials) > 0 {
		t.Errorf("trials that have ended are kept: %v", l.project.trials)
	}
}

// TestNoFault: a verify that fails because the base branch is red, or a check is
// flaky, is no setback of the change; any other is, before the review as in the merge.
func TestNoFault(t *testing.T) {
	var l Ledger
	trial := func(of, command string) forge.CheckRun {
		return forge.CheckRun{Name: of, Tree: "t", Passed: command == "", Command: command}
	}
	for i, trials := range [][]forge.CheckRun{
		{trial("change", "vet"), trial("change", "vet"), trial("base", "vet"), trial("base", "vet")}, // red
		nil,
		{trial("change", "vet"), trial("change", "vet"), trial("base", ""), trial("base", "")},
	} {
		a := forge.Attempt{Task: "a-001", Step: forge.StepRebase, Number: i + 1, Claim: 1}
		tells(&l, 0, forge.Summary{Status: forge.StatusExecuting}, issued(a))
		failed := &forge.Rebase{Verify: &forge.VerifyReport{Command: "vet", Trials: trials}}
		tells(&l, time.Second, forge.Summary{Status: forge.StatusExecuting}, forge.Effects{}, &forge.Result{Attempt: a, Duration: time.Second, Output: failed})
		queue := forge.Effects{Outbox: []forge.Event{{Message: &forge.QueueMerge{Task: "a-001", Number: i + 1}}}}
		tells(&l, time.Second, forge.Summary{Status: forge.StatusExecuting}, queue)
		ended := &forge.MergeEnded{Task: "a-001", Number: i + 1, Result: &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: failed.Verify}}
		for range 2 { // it comes twice
			tells(&l, time.Second, forge.Summary{Status: forge.StatusExecuting}, forge.Effects{}, ended)
		}
	}
	if got := l.Health(figures.HealthRequest{Weeks: 1}, noon).Total.VerifyFailed; got != 4 {
		t.Errorf("%d failed", got)
	}
}
