package flow

import (
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
)

// TestAgentsGetWhatWasApproved: a plan that waits for approval shows all that its agent
// gets of the analysis, and the agent gets it as a part of the plan. By the rules of before
// the agent got a context that nobody saw.
func TestAgentsGetWhatWasApproved(t *testing.T) {
	const told = "And do this."
	for by, apart := range map[rules.Version]bool{rules.Newest: false, rules.ApprovedContext.Since - 1: true} {
		s := NewIntent(forge.Key{Project: "p", Intent: "a"})
		policy := forge.DefaultPolicy()
		step := func(m forge.Message) {
			t.Helper()
			if _, ruling := s.Step(by, forge.Event{ID: "1", Actor: "ada", At: time.Unix(0, 0).UTC(), Message: m}); ruling.Decision != forge.Applied {
				t.Fatal(ruling)
			}
		}
		step(&forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "t", Body: "b"}, Source: forge.SourceHuman}})
		step(&forge.RunAdmitted{Run: 1})
		step(&forge.Result{
			Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
			Output: &forge.Analysis{
				Risk: forge.RiskHigh, Policy: &policy, Tasks: []forge.TaskPlan{{Title: "one", Plan: "Do it.", Context: told}},
			},
		})
		if shown := s.View().Tasks[0].Plan; strings.Contains(shown, told) == apart {
			t.Errorf("by version %d the plan that waits is %q", by, shown)
		}
		step(&forge.Approve{Plan: s.Summary().Plan})
		if c := open(t, s); (c.Task.Context == told) != apart || strings.Contains(c.Task.Plan, told) == apart {
			t.Errorf("by version %d the agent gets the plan %q, and besides %q", by, c.Task.Plan, c.Task.Context)
		}
	}
}
