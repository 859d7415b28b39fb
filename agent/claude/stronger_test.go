package claude_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/config"
)

// TestResumedWithAnotherModel has a session go on with another model and more effort, as after
// a rejection: both are those of the new call, which has the whole conversation so far, with
// the results of its tools. What it costs is counted at the price of the model that answers.
func TestResumedWithAnotherModel(t *testing.T) {
	b := newBench(t, agent.RoleImplement, func(r agenttest.Request) agenttest.Reply {
		if r.ToolResults == 0 {
			return agenttest.Reply{Text: "I look.", Tool: "Read", Input: readGreeting(r.Dir)}
		}
		return agenttest.Answer(object{"summary": "done"})(r)
	})
	b.call.Model, b.call.Effort = "haiku", config.LevelLow
	first := b.mustRun()
	before := len(b.model.Requests("main"))
	b.call.Model, b.call.Effort = "opus", config.LevelXHigh
	b.call.Session = agent.Session{ID: first.Session, Resume: true}
	b.call.Prompt = "The review rejected it: say goodbye instead."
	second := b.mustRun()

	requests := b.model.Requests("main")
	if model := requests[0].Model; !strings.Contains(model, "haiku") || !strings.Contains(string(requests[0].Body), `"effort":"low"`) {
		t.Errorf("the first call asked %s", model)
	}
	for _, r := range requests[before:] {
		body := string(r.Body)
		if !strings.Contains(r.Model, "opus") || !strings.Contains(body, `"effort":"xhigh"`) {
			t.Errorf("the resumed call asked %s: %.300s", r.Model, body)
		}
		for _, want := range []string{"Change the greeting.", "I look.", "hello", "say goodbye instead"} {
			if !strings.Contains(body, want) {
				t.Errorf("the resumed call does not have %q", want)
			}
		}
	}
	if second.Session != first.Session || !strings.Contains(second.Model, "opus") || second.Usage.CostUSD <= 2*first.Usage.CostUSD/float64(before) {
		t.Errorf("session %s, then %s of %s for $%.4f; the first cost $%.4f", first.Session, second.Session, second.Model,
			second.Usage.CostUSD, first.Usage.CostUSD)
	}
}
