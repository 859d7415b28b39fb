package e2e

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestFallback has Claude Code plan a change and then come to the end of its quota:
// Codex makes the change, and reviews it too.
func TestFallback(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	claude, codex := agenttest.ClaudeCLI(t), agenttest.CLI(t, "codex")
	model := agenttest.NewServer(t)
	env := onPath(claude, codex)
	env.set("ANTHROPIC_API_KEY", "no-key")
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		if strings.Contains(r.System, "You plan changes") {
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{{
				"name": "greet", "title": "Greet", "plan": "Write greeting.txt.", "relevant_files": []string{}, "complexity": "low",
			}}})(r)
		}
		if strings.Contains(r.System, lookingBack) {
			return nothingToPropose(r)
		}
		return agenttest.Fail(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API")(r)
	}))
	env.set("OPENAI_API_KEY", "no-key")
	env.set("OPENAI_BASE_URL", model.Script("codex", func(r agenttest.Request) agenttest.Reply {
		switch {
		case !strings.Contains(r.System, "You carry out one task"):
			return agenttest.SayJSON(agenttest.Review(r.LastUser))(r)
		case r.ToolResults == 0:
			return agenttest.Use("exec_command", object{"cmd": "echo hello > greeting.txt && git add -A && git commit -q -m Greet"})(r)
		}
		return agenttest.Say(`{"summary": "wrote the greeting"}`)(r)
	})+"/v1")

	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nfallback: [codex]\nagents: {codex: {models: {default: gpt-5-codex}}}\nverify:\n  - test ! -e broken\n",
	}, env...)
	r.draft("greet", "type: feature")
	r.must(0, "run")
	if got := r.read("greeting.txt"); got != "hello\n" {
		t.Errorf("greeting.txt is %q", got)
	}
	history := r.read(".forge/knowledge/history/greet-1.yaml")
	for _, want := range []string{"rule: fallback", "agent: claude", "agent: codex", "model: gpt-5-codex"} {
		if !strings.Contains(history, want) {
			t.Errorf("the history lacks %q:\n%s", want, history)
		}
	}
	checkCosts(t, r, model.Served("claude").Add(model.Served("codex")))
	r.tidy()
}
