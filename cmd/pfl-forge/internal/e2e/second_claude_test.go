package e2e

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestSecondReviewerOfAnotherMaker has Claude Code make changes and review them, and Codex review
// them too, both on scripted models. One is approved by both and merged; of another one the two
// say different things twice, and a person decides.
func TestSecondReviewerOfAnotherMaker(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	claude, codex := agenttest.ClaudeCLI(t), agenttest.CLI(t, "codex")
	model := agenttest.NewServer(t)
	env := onPath(claude, codex)
	env.set("ANTHROPIC_API_KEY", "no-key")
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		switch {
		case strings.Contains(r.System, "You plan changes"):
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{{
				"name": "greet", "title": "Greet", "plan": "Write greeting.txt.", "relevant_files": []string{}, "complexity": "low",
				"requirements": []string{"there is a greeting"},
			}}})(r)
		case strings.Contains(r.System, lookingBack):
			return nothingToPropose(r)
		case strings.Contains(r.System, "You review one change"):
			return agenttest.Reviews()(r)
		case r.ToolResults%2 == 0:
			return agenttest.Use("Bash", object{"command": "echo hello >> greeting.txt && git add -A && git commit -q -m Greet", "description": "greet"})(r)
		}
		return agenttest.Answer(object{"summary": "wrote the greeting"})(r)
	}))
	var strict atomic.Bool
	env.set("OPENAI_API_KEY", "no-key")
	env.set("OPENAI_BASE_URL", model.Script("codex", func(r agenttest.Request) agenttest.Reply {
		if strict.Load() {
			return agenttest.SayJSON(agenttest.Review(r.LastUser, "greeting.txt:1 is not polite"))(r)
		}
		return agenttest.SayJSON(agenttest.Review(r.LastUser))(r)
	})+"/v1")

	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nagents: {codex: {models: {default: gpt-5-codex}}}\n" +
			"review: {second: {agent: codex, when: [low]}}\nverify:\n  - test ! -e broken\n",
	}, env...)
	r.draft("greet", "type: feature")
	r.must(0, "run")
	if out := r.must(0, "verify-commit", "main").stdout; !strings.Contains(out, "approved by codex gpt-5-codex as the second reviewer") {
		t.Errorf("verify-commit says:\n%s", out)
	}
	merged := r.git("rev-parse", "main")

	strict.Store(true)
	r.draft("again", "type: feature")
	r.must(3, "run")
	if got := r.git("rev-parse", "main"); got != merged {
		t.Errorf("main moved to %s with one approval", got)
	}
	inbox := r.must(0, "inbox", "--list").stdout
	if !strings.Contains(inbox, "again") || !strings.Contains(inbox, "is not polite") {
		t.Errorf("the inbox says:\n%s", inbox)
	}
	r.must(0, "answer", "again", "1", "approve")
	r.must(0, "run")
	if got := r.git("rev-parse", "main"); got == merged {
		t.Error("a person's approval did not merge it")
	}
	checkCosts(t, r, model.Served("claude").Add(model.Served("codex")))
	r.tidy()
}
