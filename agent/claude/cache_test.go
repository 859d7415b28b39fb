package claude_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
)

// TestResumeReadsTheCache has a session that is resumed after its agent committed, as
// after a rejected review. All that the first call sent and marked comes from the cache.
func TestResumeReadsTheCache(t *testing.T) {
	var cache agenttest.Cache
	b := newBench(t, agent.RoleImplement, cache.Counted(func(r agenttest.Request) agenttest.Reply {
		switch {
		case r.ToolResults == 0, strings.Contains(r.LastUser, "rejected it") && r.ToolResults < 4:
			return agenttest.Reply{Tool: "Read", Input: readGreeting(r.Dir)}
		case r.ToolResults == 1:
			return agenttest.Use("Bash", object{"command": "echo bye >greeting.txt && git add -A && git commit -q -m 'Say bye'"})(r)
		}
		return agenttest.Answer(object{"summary": "done"})(r)
	}))
	b.call.System = strings.Repeat("You carry out one task. ", 200)
	b.call.Prompt = strings.Repeat("Change the greeting. ", 400)
	first := b.mustRun()
	before := len(b.model.Requests("main"))
	if got := git(t, b.call.Dir, "log", "-1", "--format=%s"); got != "Say bye" {
		t.Fatalf("the last commit is %q", got)
	}

	b.call.Session = agent.Session{ID: first.Session, Resume: true}
	b.call.Prompt = "The review rejected it: say goodbye instead."
	b.call.Limits.BudgetUSD = 0.012 // what the session cost before does not count
	conformance.Write(t, b.call.Dir+"/later.txt", "what the status of git would show\n")
	second := b.mustRun()

	requests := b.model.Requests("main")
	last, resumed := blocks(t, requests[before-1]), blocks(t, requests[before])
	for i, block := range last {
		if i >= len(resumed) || string(resumed[i].Content) != string(block.Content) {
			t.Errorf("block %d of %d is another one when the session is resumed:\n%s\n%s", i, len(last), block.Content, at(resumed, i))
			break
		}
	}
	u := second.Usage
	t.Logf("the first call wrote %d tokens and read %d; resumed, it read %d and wrote %d, with %d beside", first.Usage.CacheWriteTokens,
		first.Usage.CacheReadTokens, u.CacheReadTokens, u.CacheWriteTokens, u.InputTokens)
	if u.CacheReadTokens < 4*u.CacheWriteTokens || u.CacheWriteTokens == 0 {
		t.Errorf("resumed, it read %d tokens from the cache and wrote %d", u.CacheReadTokens, u.CacheWriteTokens)
	}
}

// blocks returns the blocks of a request.
func blocks(t *testing.T, r agenttest.Request) []agenttest.PromptBlock {
	t.Helper()
	out, err := agenttest.PromptBlocks(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// at returns the content of a block, if there is one.
func at(list []agenttest.PromptBlock, i int) string {
	if i < len(list) {
		return string(list[i].Content)
	}
	return "(there is none)"
}
