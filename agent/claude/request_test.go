package claude_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/prompt/prompttest"
)

// firstRequest returns the parts of a role's first request that are the CLI's
// own: its blocks of the system prompt, the tools without the schema of the
// answer, and what it puts around the prompt.
func firstRequest(t testing.TB, role agent.Role) (system, tools, around string) {
	t.Helper()
	b := newSerialBench(t, role, agenttest.Steps(agenttest.Fail(400, "invalid_request_error", "this is enough")))
	b.call.System, b.call.Prompt = "SYSTEM-OF-OURS", "PROMPT-OF-OURS"
	_, _ = b.run() // it fails, as it has to
	requests := b.model.Requests("main")
	if len(requests) == 0 {
		t.Fatal("it asked nothing")
	}
	var in struct {
		System   json.RawMessage `json:"system"`
		Messages json.RawMessage `json:"messages"`
		Tools    []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(requests[0].Body, &in); err != nil {
		t.Fatal(err)
	}
	var whole struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(requests[0].Body, &whole); err != nil {
		t.Fatal(err)
	}
	tools = string(whole.Tools)
	for _, tool := range in.Tools {
		if tool.Name == "StructuredOutput" {
			tools = strings.Replace(tools, string(tool.Schema), "{}", 1)
		}
	}
	return cut(t, in.System, b.call.System), tools, cut(t, in.Messages, b.call.Prompt)
}

// cut returns a part of a request without a text of ours, which must be there once.
func cut(t testing.TB, part json.RawMessage, ours string) string {
	t.Helper()
	if n := strings.Count(string(part), ours); n != 1 {
		t.Errorf("%q is there %d times: %s", ours, n, part)
	}
	return strings.Replace(string(part), ours, "", 1)
}

// TestSystemPromptIsOurs has the CLI send no prompt of its own beside ours, and nothing
// in it that differs between calls or days: no directory, no date, no state of git.
func TestSystemPromptIsOurs(t *testing.T) {
	most := map[agent.Role]int{agent.RoleImplement: 3000, agent.RoleReview: 1720, agent.RoleJudge: 470}
	for role := range most {
		t.Run(string(role), func(t *testing.T) {
			system, tools, around := firstRequest(t, role)
			if n := prompttest.Tokens(system + tools + around); n > most[role] {
				t.Errorf("the CLI sends %d tokens of its own; docs/performance.md counts on at most %d", n, most[role])
			}
			if len(system) > 400 {
				t.Errorf("the CLI's own system prompt has %d bytes: %s", len(system), system)
			}
			for _, volatile := range []string{"/tmp", "202", "git status", "gitStatus", "Recent commits"} {
				if strings.Contains(system, volatile) {
					t.Errorf("the system prompt has %q: %s", volatile, system)
				}
			}
			for _, unwanted := range []string{"gitStatus", "Recent commits", "Co-Authored-By", "gh pr create"} {
				if strings.Contains(tools+around, unwanted) {
					t.Errorf("the request has %q", unwanted)
				}
			}
		})
	}
}

// BenchmarkFixedRequest measures what the CLI itself sends in a role's first request,
// beside our prompts and the schema of the answer (BenchmarkFixedPrompt of the services).
func BenchmarkFixedRequest(b *testing.B) {
	for _, role := range agent.Roles() {
		b.Run(string(role), func(b *testing.B) {
			system, tools, around := firstRequest(b, role)
			for name, part := range map[string]string{"system": system, "tools": tools, "around": around, "cli": system + tools + around} {
				b.ReportMetric(float64(len(part)), name+"-bytes")
				b.ReportMetric(float64(prompttest.Tokens(part)), name+"-tokens")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
