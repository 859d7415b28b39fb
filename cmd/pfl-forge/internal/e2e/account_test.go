package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// TestClaudeWithARefusedKey drives the real CLI with a key that its provider refuses: five intents that need it, one
// question to a person, one resume, and all of them done, with no attempt spent.
func TestClaudeWithARefusedKey(t *testing.T) {
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	var valid atomic.Bool
	onPath(t, cli)
	t.Setenv("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		if !valid.Load() {
			return agenttest.Reply{Status: http.StatusUnauthorized, ErrorType: "authentication_error", Text: "invalid x-api-key"}
		}
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "nothing_to_do": "all of it is there"})(r)
	}))
	t.Setenv("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nreflection: {enabled: false}\n"})
	for i := range 5 {
		r.draft(fmt.Sprintf("part-%d", i), "type: feature")
	}

	if got := r.must(3, "run"); !strings.Contains(got.stdout, "4 open, 1 waits for you") {
		t.Errorf("the run says:\n%s", got.stdout)
	}
	tried := len(model.Requests("claude"))
	inbox := r.must(0, "inbox", "--list").stdout
	if n := strings.Count(inbox, "the account of claude refuses all calls since "); n != 1 || strings.Count(inbox, "pfl-forge resume --all") != 1 {
		t.Errorf("the inbox asks %d times:\n%s", n, inbox)
	}
	r.must(3, "run")
	if n := len(model.Requests("claude")); n != tried {
		t.Errorf("%d requests were made into a refusal that is known", n-tried)
	}

	valid.Store(true)
	r.must(0, "resume", "--all")
	if got := r.must(0, "run"); !strings.Contains(got.stdout, "5 done") {
		t.Errorf("the run says:\n%s", got.stdout)
	}
	for i := range 5 {
		history := r.read(fmt.Sprintf(".forge/knowledge/history/part-%d-1.yaml", i))
		if !strings.Contains(history, "rule: wait-for-account") || strings.Contains(history, "rule: retry-agent") {
			t.Errorf("the history of part-%d:\n%s", i, history)
		}
	}
	r.tidy()
}
