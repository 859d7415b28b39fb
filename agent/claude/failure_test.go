package claude_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/claude"
)

func TestModelFailures(t *testing.T) {
	approve := agenttest.Answer(object{"verdict": "approved", "issues": []string{}})
	for _, tt := range []struct {
		name    string
		step    agenttest.Step
		reason  forge.FailureReason
		message string
	}{
		{"no credentials", agenttest.Fail(401, "authentication_error", "invalid x-api-key"), forge.FailAuth, ""},
		{"rate limited", func(agenttest.Request) agenttest.Reply {
			return agenttest.Reply{
				Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Text: "slow down",
				Header: map[string]string{"Retry-After": "3600"},
			}
		}, forge.FailRateLimited, "slow down"},
		{"quota", agenttest.Fail(400, "invalid_request_error", "Your credit balance is too low"), forge.FailQuota, "redit balance"},
		{"overloaded", agenttest.Fail(529, "overloaded_error", "busy"), forge.FailOverloaded, ""},
		{"unknown model", agenttest.Fail(404, "not_found_error", "model: sonnet"), forge.FailConfig, "set models in pfl-forge.yaml"},
		{"text only", agenttest.Say("It looks fine to me."), forge.FailInvalidOutput, "it said: It looks fine to me."},
		{"wrong answer", agenttest.Answer(object{"verdict": "maybe"}), forge.FailInvalidOutput, "did not match the schema"},
		{"refusal", func(agenttest.Request) agenttest.Reply {
			return agenttest.Reply{Text: "I cannot do that.", StopReason: "refusal"}
		}, forge.FailRefused, ""},
		{"too many turns", agenttest.UseIn("Read", readGreeting), forge.FailMaxTurns, ""},
		{"too expensive", func(r agenttest.Request) agenttest.Reply {
			return agenttest.Reply{Tool: "Read", Input: readGreeting(r.Dir), Usage: agenttest.Usage{Input: 50_000, Output: 9000}}
		}, forge.FailBudget, ""},
		{"hangs", func(agenttest.Request) agenttest.Reply { return agenttest.Reply{Fault: agenttest.HangStart} }, forge.FailIdle, "(2s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, agent.RoleReview, agenttest.Steps(tt.step))
			switch tt.reason {
			case forge.FailMaxTurns:
				b.call.Limits.MaxTurns = 3
			case forge.FailBudget:
				b.call.Limits.BudgetUSD = 0.1
			case forge.FailIdle:
				b.call.Limits.Idle = 2 * time.Second
			default:
			}
			out, err := b.run()
			mustFail(t, err, tt.reason, tt.message)
			if out.Session == "" {
				t.Error("the session is not reported")
			}
			if tt.reason == forge.FailBudget && out.Usage.CostUSD < 0.1 {
				t.Errorf("usage %+v", out.Usage)
			}
		})
	}
	t.Run("recovers from a cut stream", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
			if r.Stream {
				return agenttest.Reply{Fault: agenttest.CutStart}
			}
			return approve(r)
		})
		b.mustRun()
	})
	t.Run("answers as text", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.Steps(agenttest.Say("```json\n{\"verdict\": \"approved\", \"issues\": []}\n```")))
		if r, _, err := agent.ParseReview(b.mustRun().Answer); err != nil || r.Verdict != forge.VerdictApproved {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("waits and goes on", func(t *testing.T) {
		busy := true
		b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
			if busy {
				busy = false
				return agenttest.Reply{Status: 529, ErrorType: "overloaded_error", Text: "busy"}
			}
			return approve(r)
		})
		b.call.Env = append(b.call.Env, "CLAUDE_CODE_MAX_RETRIES=2")
		b.mustRun()
		if !strings.Contains(fmt.Sprint(b.kinds()), string(agent.EventWaiting)) {
			t.Errorf("events are %v", b.kinds())
		}
	})
}

// TestSubscriptionLimit has the headers of a limit that a subscription reached.
func TestSubscriptionLimit(t *testing.T) {
	b := newBench(t, agent.RoleReview, func(agenttest.Request) agenttest.Reply {
		return agenttest.Reply{
			Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Text: "slow down",
			Header: map[string]string{
				"Retry-After": "3600", "Anthropic-Ratelimit-Unified-Status": "rejected",
				"Anthropic-Ratelimit-Unified-Reset":                "1800000000",
				"Anthropic-Ratelimit-Unified-Representative-Claim": "five_hour",
			},
		}
	})
	b.call.Env = append(b.call.Env, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=test-token")
	_, err := b.run()
	mustFail(t, err, forge.FailQuota, "limit")
	if f := agent.AsFailure(err); !f.Until.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("until %s", f.Until)
	}
}

func TestSessions(t *testing.T) {
	t.Run("lost", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.Steps(agenttest.Say("x")))
		b.call.Session = agent.Session{ID: claude.NewSessionID(), Resume: true}
		_, err := b.run()
		mustFail(t, err, forge.FailLostSession, "is not on this replica any more")
		b.call.Session.ID = "../../etc/passwd"
		_, err = b.run()
		mustFail(t, err, forge.FailLostSession, "is none of this agent")
	})
	t.Run("used before", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.Steps(agenttest.Answer(object{"verdict": "approved", "issues": []string{}})))
		b.call.Session.ID = claude.NewSessionID()
		first := b.mustRun()
		second := b.mustRun()
		if first.Session != b.call.Session.ID || second.Session == first.Session {
			t.Errorf("sessions %s and %s", first.Session, second.Session)
		}
	})
	t.Run("moved checkout", func(t *testing.T) {
		b := newBench(t, agent.RoleImplement, implementation("first"))
		b.call.Session = agent.Session{ID: b.mustRun().Session, Resume: true}
		b.call.Dir = checkout(t)
		write(t, filepath.Join(b.call.Dir, "greeting.txt"), "moved\n")
		if summary, _, err := agent.ParseImplementation(b.mustRun().Answer); summary != "says more" || err != nil {
			t.Errorf("summary %q, %v", summary, err)
		}
	})
}

// script runs a call of a CLI that is this shell script.
func script(t *testing.T, text string, change func(*agent.Call)) (agent.Outcome, error) {
	t.Helper()
	cli := filepath.Join(t.TempDir(), "claude")
	write(t, cli, "#!/bin/sh\ncat >prompt\n"+text+"\n")
	if err := os.Chmod(cli, 0o700); err != nil {
		t.Fatal(err)
	}
	call := agent.Call{
		Role: agent.RoleReview, Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p", Schema: agent.ReviewSchema,
		Session: agent.Session{ID: claude.NewSessionID()},
	}
	if change != nil {
		change(&call)
	}
	return claude.New(claude.Options{Path: cli}).Run(t.Context(), call, nil)
}

const good = `{"type":"result","subtype":"success","is_error":false,"structured_output":{"verdict":"approved"},"total_cost_usd":0.5,` +
	`"num_turns":2,"modelUsage":{"a":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":4},"b":{"inputTokens":10}}}`

// TestResultClauses gives each clause of success a result that lacks just it.
func TestResultClauses(t *testing.T) {
	say := func(result string) string { return "echo '" + result + "'" }
	for _, tt := range []struct {
		name, script string
		reason       forge.FailureReason // empty: success
		message      string
	}{
		{"good", say(good), "", ""},
		{"noise before and after", "echo noise; echo; " + say(good) + "; echo warning >&2", "", ""},
		{"exit status", say(good) + "; exit 3", forge.FailCrashed, "it ended with status 3"},
		{"no output", "exit 0", forge.FailCrashed, "it ended with status 0 and without a result"},
		{"garbage", "echo '{\"type\":'; echo why >&2", forge.FailInvalidOutput, "1 lines that are no messages, and no result; why"},
		{"is_error", say(strings.Replace(good, `"is_error":false`, `"is_error":true,"result":"API Error: 503 no"`, 1)), forge.FailOverloaded, "503"},
		{"403", say(strings.Replace(good, `"is_error":false`, `"is_error":true,"api_error_status":403`, 1)) + "; exit 1", forge.FailAuth, ""},
		{"500", say(strings.Replace(good, `"is_error":false`, `"is_error":true,"api_error_status":500`, 1)) + "; exit 1", forge.FailOverloaded, ""},
		{"no is_error", say(strings.Replace(good, `"is_error":false,`, ``, 1)), forge.FailCrashed, ""},
		{"odd is_error", say(strings.Replace(good, `"is_error":false`, `"is_error":"no"`, 1)), forge.FailInvalidOutput, ""},
		{"subtype", say(strings.Replace(good, "success", "error_during_execution", 1)), forge.FailCrashed, "error_during_execution"},
		{"no answer", say(strings.Replace(good, "structured_output", "other", 1)), forge.FailInvalidOutput, "no structured answer"},
		{
			"unknown command", say(`{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"Unknown command: /x"}`),
			forge.FailInvalidOutput, "taken for a command",
		},
		{"lost session", "echo 'No conversation found with session ID: x' >&2; exit 1", forge.FailLostSession, ""},
		{"signal", "kill -9 $$", forge.FailCrashed, "status 137"},
		{"flood", "yes", forge.FailOutputLimit, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := script(t, tt.script, func(c *agent.Call) { c.Limits.OutputBytes = 1 << 20 })
			if tt.reason != "" {
				mustFail(t, err, tt.reason, tt.message)
				return
			}
			want := forge.Usage{
				InputTokens: 11, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, CostUSD: 0.5, Turns: 2, Calls: 1,
			}
			if diff := cmp.Diff(want, out.Usage); diff != "" || err != nil || string(out.Answer) != `{"verdict":"approved"}` {
				t.Errorf("%v, answer %s\n%s", err, out.Answer, diff)
			}
		})
	}
}

func TestOlderResult(t *testing.T) {
	out, err := script(t, `echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"../s",`+
		`"cost":{"total_cost_usd":0.25},"context_window":{"total_input_tokens":7,"total_output_tokens":9}}'`,
		func(c *agent.Call) { c.Schema = nil })
	want := forge.Usage{InputTokens: 7, OutputTokens: 9, CostUSD: 0.25, Calls: 1}
	if diff := cmp.Diff(want, out.Usage); diff != "" || err != nil || out.Text != "done" || strings.Contains(out.Session, "s") {
		t.Errorf("%v, %+v\n%s", err, out, diff)
	}
}

func TestQuotaSaysUntilWhen(t *testing.T) {
	_, err := script(t, `echo '{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1800000000"}'; exit 1`, nil)
	mustFail(t, err, forge.FailQuota, "usage limit")
	if f := agent.AsFailure(err); !f.Until.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("until %s", f.Until)
	}
}

func TestUsageOfAKilledCall(t *testing.T) {
	line := `echo '{"type":"assistant","message":{"id":"m1","content":[],"usage":{"input_tokens":100,"output_tokens":1}}}'`
	out, err := script(t, line+"\n"+line+"\nsleep 600", func(c *agent.Call) { c.Limits.Idle = 300 * time.Millisecond })
	mustFail(t, err, forge.FailIdle, "")
	if diff := cmp.Diff(forge.Usage{InputTokens: 100, OutputTokens: 1, Turns: 1, Calls: 1}, out.Usage); diff != "" {
		t.Error(diff)
	}
}

func TestCallsThatCannotStart(t *testing.T) {
	call := agent.Call{Dir: t.TempDir(), ScratchDir: t.TempDir(), Prompt: "p"}
	_, err := claude.New(claude.Options{Path: "no-such-claude"}).Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailMissingCLI, "install it with npm")
	_, err = claude.New(claude.Options{Path: filepath.Join(call.Dir, "gone")}).Run(t.Context(), call, nil)
	mustFail(t, err, forge.FailMissingCLI, "install it with npm")
	_, err = script(t, "exit 0", func(c *agent.Call) { c.Prompt = " \n" })
	mustFail(t, err, forge.FailConfig, "the prompt is empty")
	_, err = script(t, "exit 0", func(c *agent.Call) { c.Prompt = strings.Repeat("x", 2<<20) })
	mustFail(t, err, forge.FailConfig, "the prompt is 2097152 bytes long")
}
