package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// turn is one run of a back end, as a test has it end.
type turn struct {
	out agent.Outcome
	err error
}

func outcome(answer string) agent.Outcome {
	return agent.Outcome{
		Answer: []byte(answer), Text: "words", Session: "s", Duration: time.Second, Usage: forge.Usage{InputTokens: 5, CostUSD: 1, Calls: 1},
	}
}

func TestAnsweredMendsOnce(t *testing.T) {
	const good, bad = `{"verdict": "approved", "issues": []}`, `{"verdict": "maybe"}`
	const other = `{"verdict": "rejected", "issues": ["x"]}`
	picky := func(answer []byte) error {
		if string(answer) == good {
			return agent.Fail(forge.FailInvalidOutput, "not this one")
		}
		return nil
	}
	limit := agent.Fail(forge.FailRateLimited, "slow down")
	gone := agent.Fail(forge.FailLostSession, "no such session")
	silent := agent.Fail(forge.FailInvalidOutput, "it said nothing")
	homeless := outcome(bad)
	homeless.Session = ""
	for _, tt := range []struct {
		name   string
		turns  []turn
		change func(*agent.Call)
		reason forge.FailureReason
		told   string // in the prompt of the second turn
	}{
		{"good", []turn{{outcome(good), nil}}, nil, "", ""},
		{"wrong, then good", []turn{{outcome(bad), nil}, {outcome(good), nil}}, nil, "", `verdict is "maybe"`},
		{"none, then good", []turn{{outcome(""), nil}, {outcome(good), nil}}, nil, "", "it said: words"},
		{"the back end says so, then good", []turn{{outcome(""), silent}, {outcome(good), nil}}, nil, "", "it said nothing"},
		{"wrong twice", []turn{{outcome(bad), nil}, {outcome(bad), nil}}, nil, forge.FailInvalidOutput, "maybe"},
		{"wrong, then gone", []turn{{outcome(bad), nil}, {outcome(""), gone}}, nil, forge.FailInvalidOutput, "maybe"},
		{"wrong, then a limit", []turn{{outcome(bad), nil}, {outcome(""), limit}}, nil, forge.FailRateLimited, "maybe"},
		{"a limit", []turn{{outcome(""), limit}}, nil, forge.FailRateLimited, ""},
		{"no session to go on with", []turn{{homeless, nil}}, nil, forge.FailInvalidOutput, ""},
		{"refused by the caller, then good", []turn{{outcome(good), nil}, {outcome(other), nil}}, func(c *agent.Call) { c.Check = picky }, "", "not this one"},
		{"no schema", []turn{{outcome(bad), nil}}, func(c *agent.Call) { c.Schema = nil }, "", ""},
		{"no money left", []turn{{outcome(bad), nil}}, func(c *agent.Call) { c.Limits.BudgetUSD = 1 }, forge.FailInvalidOutput, ""},
		{"no time left", []turn{{outcome(bad), nil}}, func(c *agent.Call) { c.Limits.Wall = time.Second }, forge.FailInvalidOutput, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			call := agent.Call{
				Role: agent.RoleReview, Prompt: "p", Schema: agent.ReviewSchema, Session: agent.Session{ID: "s"},
				Limits: agent.Limits{Wall: time.Minute, BudgetUSD: 10},
			}
			if tt.change != nil {
				tt.change(&call)
			}
			var calls []agent.Call
			var spent []int64
			out, err := agent.RunWithRepair(t.Context(), call, func(e agent.Event) {
				if e.Kind == agent.EventUsage {
					spent = append(spent, e.Usage.InputTokens)
				}
			}, func(_ context.Context, c agent.Call, sink func(agent.Event)) (agent.Outcome, error) {
				sink(agent.Event{Kind: agent.EventUsage, Usage: forge.Usage{InputTokens: 2}})
				calls = append(calls, c)
				turn := tt.turns[len(calls)-1]
				return turn.out, turn.err
			})
			if f := agent.AsFailure(err); tt.reason != "" && (f == nil || f.Reason != tt.reason) || tt.reason == "" && f != nil {
				t.Errorf("got %v, want %q", err, tt.reason)
			}
			n := len(tt.turns)
			if len(calls) != n || out.Usage.InputTokens != int64(5*n) || out.Usage.Calls != int64(n) || out.Duration != time.Duration(n)*time.Second {
				t.Errorf("%d calls, %+v", len(calls), out)
			}
			if n < 2 {
				return
			}
			second := calls[1]
			if second.Session != (agent.Session{ID: "s", Resume: true}) || !strings.Contains(second.Prompt, tt.told) {
				t.Errorf("it went on in %+v with %q", second.Session, second.Prompt)
			}
			if second.Limits.BudgetUSD != 9 || second.Limits.Wall != 59*time.Second {
				t.Errorf("it went on with %+v", second.Limits)
			}
			if diff := cmp.Diff([]int64{2, 7}, spent); diff != "" {
				t.Error(diff)
			}
		})
	}
}
