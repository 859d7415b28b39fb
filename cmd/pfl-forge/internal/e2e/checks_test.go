package e2e

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

const (
	sumCode = "package sum\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Diff(a, b int) int { return a - b }\n"
	sumTest = "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Error(\"1 + 2 is not 3\")\n\t}\n}\n"
)

// tester is a scripted model that works on a goal of commands. First it says that all is
// done, and commits a test of a half; what the command printed tells it what is missing.
func tester(r agenttest.Request) agenttest.Reply {
	answer := func(o object) agenttest.Reply { return agenttest.Answer(o)(r) }
	switch {
	case strings.Contains(r.System, "You take on goals"):
		return answer(taskOf("low", []string{}...))
	case strings.Contains(r.System, "You work towards a goal") && !bytes.Contains(r.Body, []byte("coverage: 50.0% of statements")):
		write := "printf '" + strings.ReplaceAll(strings.ReplaceAll(sumTest, "\n", `\n`), "\t", `\t`) + "' > sum_test.go"
		return agenttest.Steps(committing(write), agenttest.Answer(executed("coverage: 100.0%, all tests pass")))(r)
	case strings.Contains(r.System, "You work towards a goal"):
		more := `printf '\nfunc TestDiff(t *testing.T) {\n\tif Diff(3, 2) != 1 {\n\t\tt.Error("3 - 2 is not 1")\n\t}\n}\n' >> sum_test.go` +
			" && echo tested > RESULT.txt"
		return agenttest.Steps(committing(more), agenttest.Answer(executed("the other half")))(r)
	case strings.Contains(r.System, "You sum up one iteration"):
		return answer(object{"approach": "wrote a test", "result": "success", "reason": "it is there", "artifacts": []string{}, "knowledge": []object{}})
	}
	return nothingToPropose(r)
}

// TestClaudeGoalOfCommands drives the real CLI, on a scripted model, through
// what goals of real projects ask for: all tests pass, the coverage is at least
// 80 %, a file exists. Commands alone decide, and no judge is asked.
func TestClaudeGoalOfCommands(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", tester))
	env.set("ANTHROPIC_API_KEY", "no-key")
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env.set(name, strings.TrimSpace(string(out)))
	}
	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nchecks: {tests: go test ./...}\n",
		"go.mod":         "module sum\n\ngo 1.24\n",
		"sum.go":         sumCode,
		"task.yaml": `task: Test the sums
criteria:
  - check: tests
  - {type: command, command: go test -cover ./..., expect: {output: 'coverage: (8\d|9\d|100)\.'}, timeout: 5m}
  - {type: command, command: test -e RESULT.txt}
max_iterations: 3
`,
	}, env...)
	r.must(0, "goal", "run", "--id", "sums")
	r.git("checkout", "-q", "main")
	if r.read("RESULT.txt") != "tested\n" {
		t.Errorf("RESULT.txt: %q", r.read("RESULT.txt"))
	}
	var s goalStatus
	if r.json(&s, "goal", "status", "sums", "-o", "json"); s.Status != "completed" || s.Used != 2 || s.Met != 3 {
		t.Errorf("goal status: %+v", s)
	}
	if slices.ContainsFunc(model.Requests("claude"), func(q agenttest.Request) bool { return strings.Contains(q.System, "You judge whether") }) {
		t.Error("a judge was asked")
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}
