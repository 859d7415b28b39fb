package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestClaudeReachesMaxTurns has an implementer on the real CLI that never comes to
// an end. Its call ends at the limit of the project, it is told so once, in its
// session, and then a person is. Once the limit is raised, the task gets done.
func TestClaudeReachesMaxTurns(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	stuck := true
	made := 0
	env.set("ANTHROPIC_API_KEY", "no-key")
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		switch {
		case strings.Contains(r.System, "You plan changes"):
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{
				{"name": "greet", "title": "Greet", "plan": "Write greet.txt.", "relevant_files": []string{"greet.txt"}, "complexity": "med"},
			}})(r)
		case strings.Contains(r.System, "You carry out one task") && stuck:
			made++
			return agenttest.Use("Bash", object{"command": fmt.Sprintf("echo %d >>greet.txt", made)})(r)
		case strings.Contains(r.System, "You carry out one task"):
			if !strings.Contains(string(r.Body), "commit -q -m 'Greet'") {
				return agenttest.Use("Bash", object{"command": "echo done >>greet.txt && git add -A && git commit -q -m 'Greet'"})(r)
			}
			return agenttest.Answer(object{"summary": "greets"})(r)
		case strings.Contains(r.System, lookingBack):
			return nothingToPropose(r)
		}
		return agenttest.Reviews()(r)
	}))
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\ncalls: {max_turns: 3}\n"}, env...)
	r.draft("greet", "type: feature")

	r.must(2, "run")
	if made < 6 || made > 8 { // the CLI may notice its limit one request late
		t.Errorf("the implementer was asked %d times, in two calls of 3 turns", made)
	}
	out := r.must(0, "show", "greet").stdout
	if !strings.Contains(out, "max_turns: it reached the limit of turns (calls.max_turns in pfl-forge.yaml)") || !strings.Contains(out, "after 2 attempts") {
		t.Errorf("a person is shown:\n%s", out)
	}
	implementing := map[string]bool{}
	told := false
	for _, q := range model.Requests("claude") {
		if strings.Contains(q.System, "You carry out one task") {
			implementing[q.Header.Get("X-Claude-Code-Session-Id")] = true
			told = told || strings.Contains(string(q.Body), "it reached the limit of turns")
		}
	}
	if len(implementing) != 1 || !told {
		t.Errorf("%d sessions; the agent was told of the limit: %v", len(implementing), told)
	}

	stuck = false
	r.write("pfl-forge.yaml", "agent: claude\ncalls: {max_turns: 30}\n")
	r.git("commit", "-q", "-a", "-m", "More turns")
	r.must(0, "retry", "greet")
	r.must(0, "run")
	r.git("checkout", "-q", "main")
	if got := r.read("greet.txt"); !strings.HasSuffix(got, "done\n") {
		t.Errorf("greet.txt is %q", got)
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}
