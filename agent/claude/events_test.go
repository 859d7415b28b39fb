package claude_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// TestEvents has one of each kind, in their order.
func TestEvents(t *testing.T) {
	first := agenttest.Usage{Input: 10, Output: 30, CacheRead: 5, CacheWrite: 6}
	b := newBench(t, agent.RoleReview, agenttest.Steps(
		func(r agenttest.Request) agenttest.Reply {
			return agenttest.Reply{
				Thinking: "Where \x1b[31mis it?", Text: "I look.", Tool: "Read", Input: readGreeting(r.Dir), Usage: first,
			}
		},
		agenttest.UseIn("Read", func(dir string) any { return object{"file_path": dir + "/missing"} }),
		approve,
	))
	b.mustCost(b.mustRun())
	var got []string
	var usage []agent.Event
	for _, e := range b.seen {
		if e.Kind == agent.EventUsage {
			usage = append(usage, e)
			continue
		}
		got = append(got, strings.TrimSpace(string(e.Kind)+" "+e.Tool+" "+e.Text))
	}
	want := []string{
		"started", "thinking", "thinking  Where is it?", "text  I look.", "tool Read greeting.txt",
		"tool Read missing", "tool_failed Read File does not exist.", "tool StructuredOutput",
	}
	same := slices.EqualFunc(got, want, func(g, w string) bool {
		return g == w || strings.HasPrefix(w, "tool_failed") && strings.HasPrefix(g, w)
	})
	if !same {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// The beginning and the end of each message, and the end of the call.
	if len(usage) != 7 || usage[0].Usage.OutputTokens != 1 || usage[1].Usage.OutputTokens != 30 || usage[6].Usage.OutputTokens != 70 {
		t.Errorf("usage events are %+v", usage)
	}
	for i, e := range usage {
		if e.Usage.CostUSD <= 0 || i > 0 && e.Usage.CostUSD < usage[i-1].Usage.CostUSD-1e-9 {
			t.Errorf("the cost is $%g, event %d", e.Usage.CostUSD, i)
		}
	}
}

// TestCompacting has a conversation that fills the model's window.
func TestCompacting(t *testing.T) {
	b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
		reply := approve(r)
		switch {
		case len(r.Tools) == 0 || strings.Contains(r.LastUser, "summary of the conversation"):
			reply = agenttest.Reply{Text: "<summary>They wait for a review.</summary>"}
		case r.N == 0:
			reply = agenttest.Reply{Tool: "Read", Input: readGreeting(r.Dir), Usage: agenttest.Usage{Input: 980_000, Output: 20}}
		}
		return reply
	})
	out := b.mustRun()
	compacted := 0
	for _, e := range b.seen {
		if e.Kind == agent.EventCompacting {
			compacted++
		}
	}
	if compacted != 1 {
		t.Errorf("events are %v", b.kinds())
	}
	b.mustCost(out)
}

// TestRoleWithoutTools sees nothing but its prompt.
func TestRoleWithoutTools(t *testing.T) {
	b := newBench(t, agent.RoleJudge, agenttest.Steps(agenttest.UseIn("Read", readGreeting), agenttest.Say("It is reached.")))
	b.call.Tools, b.call.Schema = nil, nil
	if out := b.mustRun(); out.Text != "It is reached." || out.Answer != nil {
		t.Errorf("it said %q, answered %s", out.Text, out.Answer)
	}
	for _, r := range b.model.Requests("main") {
		if len(r.Tools) > 0 || strings.Contains(r.LastResult, "hello") {
			t.Errorf("it has the tools %q, and read %q", r.Tools, r.LastResult)
		}
	}
}
