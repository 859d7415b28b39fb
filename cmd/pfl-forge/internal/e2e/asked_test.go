package e2e

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// asker is a scripted model whose reviewer asks for check tests before its
// verdict, and goes by what that says. The first change fails it.
func asker(r agenttest.Request) agenttest.Reply {
	answer := func(o object) agenttest.Reply { return agenttest.Answer(o)(r) }
	said := r.LastUser
	switch {
	case strings.Contains(r.System, "You review one change") && !strings.Contains(said, "What the checks say that you asked for"):
		return answer(object{"checks": []string{"tests"}, "requirements": []object{}, "verdict": "rejected", "issues": []string{}})
	case strings.Contains(r.System, "You review one change") && bytes.Count(r.Body, []byte("# The change")) != 1:
		return agenttest.Reply{Status: 400, ErrorType: "invalid_request_error", Text: "this is not the same session"}
	case strings.Contains(r.System, "You review one change") && strings.Contains(said, `"tests" ("sh tests.sh") passed.`):
		return answer(object{
			"requirements": []object{agenttest.Claim(1, object{"kind": "command", "ref": "a1", "quote": "3 greetings"})}, "verdict": "approved", "issues": []string{},
		})
	case strings.Contains(r.System, "You review one change"):
		return answer(object{
			"requirements": []object{{"number": 1, "met": false, "confidence": 1, "note": "tests fails", "evidence": []object{}}},
			"verdict":      "rejected", "issues": []string{"hello.txt:1: tests fails"},
		})
	case strings.Contains(r.System, "You carry out one task"):
		if r.ToolResults == 2 && !strings.Contains(said, "2 greetings are not 3") {
			return agenttest.Reply{Status: 400, ErrorType: "invalid_request_error", Text: "nobody says what is wrong"}
		}
		return agenttest.Steps(
			committing("echo terve > hello.txt; echo hei >> hello.txt"), agenttest.Answer(object{"summary": "greeted"}),
			committing("echo hei >> hello.txt"), agenttest.Answer(object{"summary": "one more"}),
		)(r)
	}
	return answer(object{"type": "feature", "risk": "low", "tasks": []object{{
		"name": "greet", "title": "Greet", "plan": "Greet three times.", "requirements": []string{"it greets three times"},
		"relevant_files": []string{"hello.txt"}, "complexity": "low",
	}}})
}

// TestClaudeAsksForChecks has the real CLI, on a scripted model, ask for a
// check of the project in two reviews: the first is rejected by what it says,
// with its output for the author, the second approved.
func TestClaudeAsksForChecks(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", asker))
	env.set("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nchecks: {tests: sh tests.sh}\nreflection: {enabled: false}\nbudget: {intent_usd: 5, call_usd: 0.5}\n",
		"tests.sh":       "n=$(grep -c . hello.txt)\n[ \"$n\" = 3 ] || { echo \"$n greetings are not 3\"; exit 1; }\necho \"$n greetings\"\n",
	}, env...)
	r.must(0, "create", "greet", "--title", "Greet")
	r.must(0, "run")
	r.git("checkout", "-q", "main")
	if got := r.read("hello.txt"); got != "terve\nhei\nhei\n" {
		t.Errorf("hello.txt is %q", got)
	}
	h := r.lastRun("greet")
	if asked := slices.DeleteFunc(h.rules(), func(rule string) bool { return rule != "checks" }); len(asked) != 2 {
		t.Errorf("the history tells of %q", h.rules())
	}
	var shown struct {
		Reviews []struct {
			Verdict string `json:"verdict"`
			Checks  []struct {
				Name   string `json:"name"`
				Passed bool   `json:"passed"`
			} `json:"checks"`
		} `json:"reviews"`
	}
	r.json(&shown, "show", "greet-001", "-o", "json")
	if v := shown.Reviews; len(v) != 2 || v[0].Verdict != "rejected" || v[0].Checks[0].Passed || v[1].Verdict != "approved" || !v[1].Checks[0].Passed {
		t.Errorf("show has %+v", v)
	}
	contains(t, "logs", r.must(0, "logs", "greet").stdout, "Bash echo terve", "Bash ended", "2 greetings are not 3")
	checkCosts(t, r, model.Served("claude"))
}
