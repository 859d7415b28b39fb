package flow

import (
	"fmt"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// BenchmarkStep takes one task through rejection after rejection, after
// histories of different lengths: what a decision costs does not grow with them.
func BenchmarkStep(b *testing.B) {
	for _, length := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("after-%d", length), func(b *testing.B) {
			s := reviewing(b)
			for range length / 3 {
				round(b, s)
			}
			b.ResetTimer()
			for b.Loop() {
				round(b, s)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/3, "ns/step")
		})
	}
}

// reviewing is an intent whose only task waits for its implementation, and
// whose policy never gives up.
func reviewing(b *testing.B) *Intent {
	b.Helper()
	s := NewIntent(forge.Key{Project: "p", Intent: "a"})
	at := time.Unix(0, 0).UTC()
	policy := forge.DefaultPolicy()
	policy.MaxReviewRetries = 1 << 40
	for _, ev := range []forge.Event{
		{Message: &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "t", Body: "b"}, Source: forge.SourceHuman}}},
		{Message: &forge.RunAdmitted{Run: 1}},
		{Message: &forge.Result{
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
			Output:  &forge.Analysis{Risk: forge.RiskLow, Policy: &policy, Tasks: []forge.TaskPlan{{Title: "one"}}},
		}},
	} {
		ev.At = at
		if _, ruling := s.Step(rules.Newest, ev); ruling.Decision != forge.Applied {
			b.Fatal(ruling)
		}
	}
	return s
}

// round is three steps: implement, rebase, a review that rejects. Reviews are
// dropped afterwards: the number of reviews of one task is bounded by the policy.
func round(b *testing.B, s *Intent) {
	b.Helper()
	t := s.Tasks.Tasks[0]
	for _, r := range []forge.Result{
		{Output: &forge.Implementation{Head: "h", Commits: 1}},
		{Output: &forge.Rebase{Head: "h"}},
		{Output: &forge.Review{TaskID: t.ID, Head: "h", Verdict: forge.VerdictRejected, Issues: []string{"no"}}},
	} {
		r.Attempt = s.Dispatch.Outbox.Commands[0].Attempt
		if _, ruling := s.Step(rules.Newest, forge.Event{Message: &r}); ruling.Decision != forge.Applied {
			b.Fatal(ruling)
		}
	}
	t.Reviews = nil
	s.Dispatch.Outbox.Timers = nil
}
