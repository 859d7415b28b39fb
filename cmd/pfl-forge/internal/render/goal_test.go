package render

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

func TestGoal(t *testing.T) {
	for want, g := range map[string]forge.GoalSummary{
		"no iteration yet, 10 at most":                            {Most: 10, Criteria: 2},
		"iteration 2 of 10, 1 of 3 criteria met":                  {Iteration: 7, Used: 2, Most: 10, Criteria: 3, Met: 1},
		"completed after 1 iteration, 1 of 1 criterion met":       {Used: 1, Most: 10, Criteria: 1, Met: 1, Status: forge.LoopCompleted},
		"max_iterations after 10 iterations, 0 of 2 criteria met": {Used: 10, Most: 10, Criteria: 2, Status: forge.LoopMaxIterations},
		"cancelled after 0 iterations, 0 of 2 criteria met":       {Most: 10, Criteria: 2, Status: forge.LoopCancelled},
	} {
		if got := Goal(&g); got != want {
			t.Errorf("Goal(%+v) = %q, want %q", g, got, want)
		}
	}
}
