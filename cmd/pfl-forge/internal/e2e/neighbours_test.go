package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestClaudeHearsOfNeighbours has the real CLI, on a scripted model, analyze
// ten drafts at once, of which one uses what the last one adds. The first
// analysis is told of the nine others, so that one is found, and waits.
func TestClaudeHearsOfNeighbours(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	var mu sync.Mutex
	told := map[string]int{} // how many others each request knew of when it was first analyzed
	env.set("ANTHROPIC_API_KEY", "no-key")
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		plan := object{"type": "feature", "risk": "low", "tasks": []object{}, "nothing_to_do": "all of it is there"}
		switch {
		case strings.Contains(r.System, "You carry out one task"):
			return agenttest.Steps(committing("echo hello >> hello.txt"), agenttest.Answer(object{"summary": "greeted"}))(r)
		case !strings.Contains(r.System, "You plan changes"):
			return agenttest.Reviews()(r)
		}
		own, others, _ := strings.Cut(r.LastUser, "# Other active requests")
		for i := range 10 {
			if id := fmt.Sprintf("part-%d", i); strings.Contains(own, id) {
				mu.Lock()
				if _, again := told[id]; !again {
					told[id] = strings.Count(others, "part-") - strings.Count(others, id)
				}
				mu.Unlock()
			}
		}
		switch task := []object{{
			"name": "greet", "title": "Greet", "plan": "Write hello.txt.", "requirements": []string{"it greets"},
			"relevant_files": []string{"hello.txt"}, "complexity": "low",
		}}; {
		case strings.Contains(own, "part-0"): // it uses what part-9 adds
			plan = object{"type": "feature", "risk": "low", "tasks": task}
			if strings.Contains(others, "part-9") {
				plan["depends_on"] = []string{"part-9"}
			}
		case strings.Contains(own, "part-9"):
			plan = object{"type": "feature", "risk": "low", "tasks": task}
		}
		return agenttest.Answer(plan)(r)
	}))
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nreflection: {enabled: false}\n"}, env...)
	for i := range 10 {
		r.draft(fmt.Sprintf("part-%d", i), "type: feature")
	}
	got := r.must(0, "run")
	contains(t, "run", got.stdout+got.stderr, "part-0 ", "waits for part-9", "10 done")
	if told["part-0"] < 9 || len(told) != 10 { // those that come later hear of those that have not ended yet
		t.Errorf("the analyses were told of so many others: %v", told)
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}
