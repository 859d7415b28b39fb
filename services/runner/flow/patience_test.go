package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// implementing is an intent whose only task waits for its implementation, as a
// version of the rules decides.
func implementing(t *testing.T, by rules.Version) *Intent {
	t.Helper()
	s := NewIntent(forge.Key{Project: "p", Intent: "a"})
	policy := forge.DefaultPolicy()
	for _, m := range []forge.Message{
		&forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "t", Body: "b"}, Source: forge.SourceHuman}},
		&forge.RunAdmitted{Run: 1},
		&forge.Result{
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
			Output:  &forge.Analysis{Risk: forge.RiskLow, Policy: &policy, Tasks: []forge.TaskPlan{{Title: "one"}}},
		},
	} {
		if _, ruling := s.Step(by, forge.Event{At: time.Unix(0, 0).UTC(), Message: m}); ruling.Decision != forge.Applied {
			t.Fatal(ruling)
		}
	}
	return s
}

// open returns the only open command of an intent.
func open(t *testing.T, s *Intent) *forge.Command {
	t.Helper()
	if n := len(s.Dispatch.Outbox.Commands); n != 1 {
		t.Fatalf("%d commands are open", n)
	}
	return &s.Dispatch.Outbox.Commands[0]
}

// TestPatience: a step that no replica can do for a night is answered ever less
// often, costs the task nothing, and is with the replicas all the time. People
// see why, in the words of the newest answer.
func TestPatience(t *testing.T) {
	s := implementing(t, rules.Newest)
	at, answers := time.Unix(0, 0).UTC(), 0
	for end := at.Add(12 * time.Hour); at.Before(end); answers++ {
		c := open(t, s)
		if c.Patience < 15*time.Second || c.Patience > 15*time.Minute || c.Replica != "" {
			t.Fatalf("answer %d comes after %v, from replica %q", answers, c.Patience, c.Replica)
		}
		at = at.Add(c.Patience)
		_, ruling := s.Step(rules.Newest, forge.Event{At: at, Message: &forge.Result{
			Attempt: c.Attempt, Replica: "w1", Output: &forge.Failure{Reason: forge.FailReplica, Message: "codex is not in PATH"},
		}})
		if ruling.Decision != forge.Applied || len(s.Dispatch.Outbox.Timers) > 0 {
			t.Fatal(ruling, s.Dispatch.Outbox.Timers)
		}
	}
	if answers > 60 {
		t.Errorf("%d records in 12 hours", answers)
	}
	sum, task := s.Summary(), s.Tasks.Tasks[0]
	if want := "no replica could do implement at " + at.Format(time.DateTime) + " UTC: codex is not in PATH"; !strings.HasSuffix(sum.Activity, want) {
		t.Errorf("it says %q, want %q", sum.Activity, want)
	}
	told := 0
	for _, a := range s.History.Adjustments {
		if a.Rule == "wait-for-replica" {
			told++
		}
	}
	if told != 1 || task.Attempts != 1 {
		t.Errorf("the history tells it %d times, and %d attempts are spent", told, task.Attempts)
	}
	c := open(t, s)
	s.Step(rules.Newest, forge.Event{At: at, Message: &forge.Result{Attempt: c.Attempt, Replica: "w1", Output: &forge.Implementation{Head: "h", Commits: 1}}})
	if got := open(t, s); got.Attempt.Step != forge.StepRebase || got.Patience != 15*time.Second || strings.Contains(s.Summary().Activity, "no replica") {
		t.Errorf("once a replica could: %s, %v, %q", got.Attempt, got.Patience, s.Summary().Activity)
	}
}

// TestPatienceHasAVersion: rules that do not know that answer ask for none, so
// that no record of theirs has it.
func TestPatienceHasAVersion(t *testing.T) {
	for by, want := range map[rules.Version]time.Duration{rules.PatientSteps.Since - 1: 0, rules.PatientSteps.Since: 15 * time.Second} {
		if got := open(t, implementing(t, by)).Patience; got != want {
			t.Errorf("by version %d the patience is %v, want %v", by, got, want)
		}
	}
}
