package claude_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/agenttest/conformance"
	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

// TestBudget has a model whose third message overruns what the call may cost.
func TestBudget(t *testing.T) {
	expensive := agenttest.Usage{Input: 10_000, Output: 1000} // $0.045
	b := newBench(t, agent.RoleImplement, func(agenttest.Request) agenttest.Reply {
		return agenttest.Reply{Tool: "Bash", Input: object{"command": "echo x >>work"}, Usage: expensive}
	})
	b.call.Limits.BudgetUSD = 0.1
	out, err := b.run()
	mustFail(t, err, forge.FailBudget, "of the $0.10 reserved for this call")
	b.mustCost(out)
	if u := out.Usage; u.CostUSD < 0.1 || u.CostUSD > 0.15 {
		t.Errorf("usage %+v", u)
	}
	if work, err := os.ReadFile(filepath.Join(b.call.Dir, "work")); err != nil || !strings.HasPrefix(string(work), "x\nx\n") {
		t.Errorf("its work is %q, %v", work, err)
	}
	if len(sessionFiles(t, b)) == 0 {
		t.Error("there is no session to go on with")
	}
}

// TestBudgetOfACLIThatGoesOn does not rely on the CLI's own limit. By default the
// tokens of the stream count, by the list of prices; with a connection, what it counts.
func TestBudgetOfACLIThatGoesOn(t *testing.T) {
	message := func(id string) string {
		return `echo '{"type":"stream_event","event":{"type":"message_start","message":{"id":"` + id +
			`","model":"claude-sonnet-5","usage":{"input_tokens":10000,"output_tokens":1}}}}'
echo '{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":1000}}}'
`
	}
	busy := message("1") + message("2") + message("3") + message("4") + "exec sleep 600"
	out, err := script(t, busy, func(c *agent.Call) { c.Limits.BudgetUSD = 0.1 })
	mustFail(t, err, forge.FailBudget, "by pfl-forge")
	if u := out.Usage; u.InputTokens < 30_000 || u.OutputTokens < 3000 || u.CostUSD < 0.135 {
		t.Errorf("usage %+v", u)
	}

	var closed atomic.Int32
	counted := forge.Usage{InputTokens: 5, OutputTokens: 6, CacheReadTokens: 7, CacheWriteTokens: 8, CostUSD: 0.2, Calls: 9}
	path := filepath.Join(t.TempDir(), "claude")
	conformance.Write(t, path, "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.330 (Claude Code)' && exit\nenv >env\n"+message("1")+"exec sleep 600\n")
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	cli := claude.New(claude.Options{
		Path: path, Env: []string{"ANTHROPIC_API_KEY=the-real-one", "HTTPS_PROXY=kept"},
		Connect: func(context.Context, agent.Call) (agent.Connection, error) {
			return agent.Connection{
				Env:   []string{"ANTHROPIC_AUTH_TOKEN=of-this-call"},
				Usage: func() forge.Usage { return counted },
				Close: func() { closed.Add(1) },
			}, nil
		},
	})
	call := agent.Call{
		Role: agent.RoleImplement, Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p", Limits: agent.Limits{BudgetUSD: 0.1},
	}
	out, err = cli.Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailBudget, "$0.20 of the $0.10")
	counted.Calls, counted.Turns = 1, 1
	if diff := cmp.Diff(counted, out.Usage); diff != "" || closed.Load() != 1 {
		t.Errorf("closed %d times\n%s", closed.Load(), diff)
	}
	env, err := os.ReadFile(filepath.Join(call.Dir, "env"))
	if s := string(env); err != nil || strings.Contains(s, "the-real-one") || !strings.Contains(s, "of-this-call") || !strings.Contains(s, "HTTPS_PROXY=kept") {
		t.Errorf("%v; its environment is\n%s", err, env)
	}
}

// TestConnectionKnowsTheLimit has a limit whose end the CLI does not report.
func TestConnectionKnowsTheLimit(t *testing.T) {
	until := time.Now().Add(time.Hour)
	path := filepath.Join(t.TempDir(), "claude")
	conformance.Write(t, path, "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.330 (Claude Code)' && exit\n"+
		`echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow down"}'; exit 1`)
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	call := agent.Call{Role: agent.RoleReview, Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p"}
	cli := claude.New(claude.Options{Path: path, Connect: func(context.Context, agent.Call) (agent.Connection, error) {
		return agent.Connection{Limited: func() time.Time { return until }}, nil
	}})
	_, err := cli.Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailRateLimited, "slow down")
	if f := agent.AsFailure(err); !f.Until.Equal(until) {
		t.Errorf("until %s", f.Until)
	}
	cli = claude.New(claude.Options{Path: path, Connect: func(context.Context, agent.Call) (agent.Connection, error) {
		return agent.Connection{}, agent.Fail(forge.FailSandbox, "no way out")
	}})
	_, err = cli.Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailSandbox, "no way out")
}

func TestUsageOfAKilledCall(t *testing.T) {
	line := `echo '{"type":"assistant","message":{"id":"m1","model":"claude-sonnet-5","content":[],"usage":{"input_tokens":100,"output_tokens":1}}}'`
	out, err := script(t, line+"\n"+line+"\nsleep 600", func(c *agent.Call) { c.Limits.Idle = 300 * time.Millisecond })
	mustFail(t, err, forge.FailIdle, "")
	want := forge.Usage{InputTokens: 100, OutputTokens: 1, Turns: 1, Calls: 1}
	want.CostUSD = price.Cost("claude-sonnet-5", want)
	if diff := cmp.Diff(want, out.Usage); diff != "" {
		t.Error(diff)
	}
}

// TestPricesCoverWhatTheCLIReports compares the price list with the CLI's own figures.
func TestPricesCoverWhatTheCLIReports(t *testing.T) {
	for _, model := range []string{"opus", "haiku", "claude-opus-4-1"} {
		t.Run(model, func(t *testing.T) {
			b := newBench(t, agent.RoleReview, agenttest.Steps(func(r agenttest.Request) agenttest.Reply {
				reply := approve(r)
				reply.Usage = agenttest.Usage{Input: 10_000, Output: 2000, CacheRead: 30_000, CacheWrite: 4000}
				return reply
			}))
			b.call.Model = model
			out := b.mustRun()
			if _, known := price.Of(out.Model); !known {
				t.Errorf("the price of %s is not known", out.Model)
			}
			if ours := price.Cost(out.Model, out.Usage); ours < out.Usage.CostUSD-1e-9 || ours > 1.5*out.Usage.CostUSD {
				t.Errorf("%s: $%g by the list, the CLI says $%g", out.Model, ours, out.Usage.CostUSD)
			}
		})
	}
}
