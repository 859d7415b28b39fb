package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// refusing is how the inbox says that an account refuses calls, for how long it may have done that.
var refusing = regexp.MustCompile("the account of claude (refuses|has refused) all calls")

// TestClaudeWithARefusedKey drives the real CLI with a key that its provider refuses: five intents
// that need it, one question to a person, one resume, and all of them done, with no attempt spent.
func TestClaudeWithARefusedKey(t *testing.T) {
	t.Parallel()
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	var valid atomic.Bool
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		if !valid.Load() {
			return agenttest.Reply{Status: http.StatusUnauthorized, ErrorType: "authentication_error", Text: "invalid x-api-key"}
		}
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "nothing_to_do": "all of it is there"})(r)
	}))
	env.set("ANTHROPIC_API_KEY", "no-key")
	r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nreflection: {enabled: false}\n"}, env...)
	for i := range 5 {
		r.draft(fmt.Sprintf("part-%d", i), "type: feature")
	}

	if got := r.must(3, "run"); !strings.Contains(got.stdout, "4 open, 1 waits for you") {
		t.Errorf("the run says:\n%s", got.stdout)
	}
	tried := len(model.Requests("claude"))
	inbox := r.must(0, "inbox", "--list").stdout
	if n := len(refusing.FindAllString(inbox, -1)); n != 1 || strings.Count(inbox, "pfl-forge resume --all") != 1 {
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
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}

// TestWorkersWithARefusedKey has two implementers as processes of their own, whose
// provider refuses the key once changes are planned: the project knows it as one fact, a
// person is asked once, and the one call that each worker has under way before it hears
// of that is all that is tried. When the key is mended one resume lets everything go on.
func TestWorkersWithARefusedKey(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const intents = 6
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	var valid atomic.Bool
	env := onPath(cli)
	k := &keyed{between: func() {}}
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		if strings.Contains(r.System, "You carry out one task") && !valid.Load() {
			return agenttest.Reply{Status: http.StatusUnauthorized, ErrorType: "authentication_error", Text: "invalid x-api-key"}
		}
		return k.reply(r)
	}))
	env.set("ANTHROPIC_API_KEY", "no-key")
	c := newCluster(t, map[string]string{"pfl-forge.yaml": "agent: claude\nreflection: {enabled: false}\n"}, append(env, "FORGE_WORKERS=1")...)
	for i := range intents {
		c.says(c.forge("create", fmt.Sprintf("part-%d", i), "--title", "Part", "--body", "Please."), 0)
	}
	c.says(c.forge("run"), 3)
	sessions := map[string]bool{}
	for _, r := range model.Requests("claude") {
		if strings.Contains(r.System, "You carry out one task") {
			sessions[r.Header.Get("X-Claude-Code-Session-Id")] = true
		}
	}
	if len(sessions) == 0 || len(sessions) > 2 {
		t.Errorf("%d calls were made with a key that is refused, by two workers", len(sessions))
	}
	inbox := c.forge("inbox", "--list").stdout
	if n := len(refusing.FindAllString(inbox, -1)); n != 1 {
		t.Errorf("the inbox asks %d times:\n%s", n, inbox)
	}
	tried := len(model.Requests("claude"))
	c.says(c.forge("run"), 3)
	if n := len(model.Requests("claude")); n != tried {
		t.Errorf("%d requests were made into a refusal that is known", n-tried)
	}

	valid.Store(true)
	c.says(c.forge("resume", "--all"), 0)
	if got := c.forge("run"); got.code != 0 || !strings.Contains(got.stdout, fmt.Sprintf("%d done", intents)) {
		t.Errorf("the run says:\n%s%s", got.stdout, got.stderr)
	}
	for i := range intents {
		if got := c.forge("history", fmt.Sprintf("part-%d", i)); got.code != 0 || strings.Contains(got.stdout, "retry-agent") {
			t.Errorf("an attempt was spent: %+v", got)
		}
	}
	c.checkCosts(model.Served("claude"))
}
