package runner_test

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// TestSettingsOfALateResult: a result that the rules do not wait for any more tells no
// policy, although it is journaled for what it cost, and neither does one that failed.
func TestSettingsOfALateResult(t *testing.T) {
	t.Parallel()
	key := forge.Key{Project: "shop", Intent: "fix"}
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	policy := func(commit string) *forge.Policy {
		p := forge.DefaultPolicy()
		p.Approvals.Commit, p.Settings = commit, []forge.Setting{{Name: "verify", Value: commit, By: "repository"}}
		return &p
	}
	m := flow.NewIntent(key)
	var records []forge.Record
	var tell func(message forge.Message)
	tell = func(message forge.Message) {
		at = at.Add(time.Minute)
		ev := forge.Event{ID: at.String(), To: key, At: at, Actor: "ada", Message: message}
		effects, ruling := m.Step(rules.Newest, ev)
		if ruling.Decision == forge.Refused {
			t.Fatalf("%T is refused: %s", message, ruling.Reason)
		}
		records = append(records, forge.Record{Events: []forge.Event{ev}, Rules: int(rules.Newest)})
		for _, timer := range effects.Timers {
			tell(&forge.TimerFired{Key: timer.Key, At: timer.At})
		}
	}
	open := func() forge.Attempt {
		t.Helper()
		now := m.Summary()
		if len(now.Open) != 1 {
			t.Fatalf("open are %+v", now)
		}
		return now.Open[0]
	}
	wants := func(about, commit string, when time.Time) {
		t.Helper()
		p, read := runner.PolicyOf(key, records)
		if commit == "" && p == nil {
			return
		}
		if p == nil || p.Approvals.Commit != commit || !read.Equal(when) {
			t.Errorf("%s: %+v at %s, want %s at %s", about, p, read, commit, when)
		}
	}
	tell(&forge.Submit{Intent: forge.Intent{ID: key.Intent, Settings: forge.Settings{Title: "Fix it", Body: "It is broken."}, Source: forge.SourceHuman}})
	tell(&forge.RunAdmitted{Run: 1})
	wants("before a result", "", at)
	first := open()
	tell(&forge.Result{To: key, Attempt: first, Policy: policy("failed"), Output: &forge.Failure{Reason: forge.FailCrashed, Message: "it crashed"}})
	wants("after a failure", "", at)
	second := open()
	tell(&forge.Result{To: key, Attempt: first, Usage: forge.Usage{CostUSD: 2, Calls: 1}, Output: &forge.Analysis{Policy: policy("late")}})
	wants("after one that was too late", "", at)
	tell(&forge.Result{To: key, Attempt: second, Output: &forge.Analysis{
		Policy: policy("read"), Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}},
	}})
	when := at
	wants("after the answer", "read", when)
	tell(&forge.Result{To: key, Attempt: second, Output: &forge.Analysis{Policy: policy("again")}})
	wants("after it came again", "read", when)
}
