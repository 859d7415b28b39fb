package claude_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
)

// TestModelFailures has the real CLI meet what can go wrong with a model, beyond what
// the conformance suite has.
func TestModelFailures(t *testing.T) {
	reply := agenttest.Always
	for _, tt := range []struct {
		name    string
		step    agenttest.Step
		reason  forge.FailureReason
		message string
	}{
		{"403", agenttest.Fail(403, "permission_error", "not for you"), forge.FailAuth, "not for you"},
		{"long", agenttest.Fail(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), forge.FailPromptTooLong, "too long"},
		{"context full", reply(agenttest.Reply{Text: "x", StopReason: "model_context_window_exceeded"}), forge.FailPromptTooLong, "context window"},
		{"garbage", reply(agenttest.Reply{Fault: agenttest.Garbage}), forge.FailOverloaded, "malformed"},
		{"cut before the content", reply(agenttest.Reply{Text: "x", Fault: agenttest.CutStart}), forge.FailOverloaded, ""},
		{"cut after the content", reply(agenttest.Reply{Text: "x", Fault: agenttest.CutLate}), forge.FailOverloaded, "unreachable"},
		{"error in the stream", reply(agenttest.Reply{Text: "busy", ErrorType: "overloaded_error", Fault: agenttest.ErrorMiddle}), forge.FailOverloaded, "busy"},
		{"refusal", reply(agenttest.Reply{Text: "I cannot do that.", StopReason: "refusal"}), forge.FailRefused, "rephrase the request"},
		{"reply too long", reply(agenttest.Reply{Text: "and so on", StopReason: "max_tokens"}), forge.FailInvalidOutput, "too long for the model"},
		{"pause", reply(agenttest.Reply{Text: "hm", StopReason: "pause_turn"}), forge.FailInvalidOutput, "before it was done"},
		{"nothing", agenttest.Say(""), forge.FailInvalidOutput, "without an answer"},
		{"hangs in the stream", reply(agenttest.Reply{Text: "x", Fault: agenttest.HangMiddle}), forge.FailIdle, "(3s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, agent.RoleReview, agenttest.Steps(tt.step))
			if tt.reason == forge.FailIdle {
				b.call.Limits.Idle = 3 * time.Second
			}
			out, err := b.run()
			mustFail(t, err, tt.reason, tt.message)
			if out.Session != b.call.Session.ID {
				t.Errorf("the session is %q", out.Session)
			}
			// The CLI need not tell of a stream that was cut; only the gateway counts it always.
			cut := strings.HasPrefix(tt.name, "cut")
			if !cut && b.model.Served("main") != (agenttest.Usage{}) {
				b.mustCost(out)
			}
		})
	}
}

func TestModelRecovers(t *testing.T) {
	t.Run("after a cut stream", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
			if r.Stream {
				return agenttest.Reply{Fault: agenttest.CutStart}
			}
			return approve(r)
		})
		// A reply has 100 tokens in and 20 out; the cut stream's one event says 100 and 1.
		// Whether the CLI tells of that one depends on when it sees the connection break.
		u := b.mustRun().Usage
		whole, both := u.InputTokens == 100 && u.OutputTokens == 20, u.InputTokens == 200 && u.OutputTokens == 21
		if !whole && !both || u.CostUSD <= 0 {
			t.Errorf("usage %+v", u)
		}
	})
	t.Run("after an overload", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.InOrder(agenttest.Fail(529, "overloaded_error", "busy"), approve))
		b.call.Env = append(b.call.Env, "CLAUDE_CODE_MAX_RETRIES=2")
		b.mustCost(b.mustRun())
		if !slices.ContainsFunc(b.seen, func(e agent.Event) bool {
			return e.Kind == agent.EventWaiting && e.Text == "the model's API answers 529" && !e.Until.IsZero()
		}) {
			t.Errorf("events are %+v", b.seen)
		}
	})
	t.Run("from answering as text", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.Steps(agenttest.Say("```json\n{\"requirements\": [], \"verdict\": \"approved\", \"issues\": []}\n```")))
		if r, _, err := agent.ParseReview(b.mustRun().Answer); err != nil || r.Verdict != forge.VerdictApproved {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("a slow one is not idle", func(t *testing.T) {
		b := newBench(t, agent.RoleReview, agenttest.Steps(func(r agenttest.Request) agenttest.Reply {
			reply := approve(r)
			reply.Drip = 2 * time.Second // a message has six events
			return reply
		}))
		b.call.Limits.Idle = 10 * time.Second
		b.mustCost(b.mustRun())
	})
}

// TestMendsWhatTheSchemaAllows has a model whose answer fits the schema but not the
// rules, until it is told in the same session what is wrong.
func TestMendsWhatTheSchemaAllows(t *testing.T) {
	b := newBench(t, agent.RoleReview, func(r agenttest.Request) agenttest.Reply {
		if strings.Contains(r.LastUser, "requirements[0].confidence is 7") {
			return approve(r)
		}
		claim := agenttest.Claim(1, nil)
		claim["confidence"] = 7
		return agenttest.Answer(object{"requirements": []any{claim}, "verdict": "rejected", "issues": []string{}})(r)
	})
	out := b.mustRun()
	if r, _, err := agent.ParseReview(out.Answer); err != nil || r.Verdict != forge.VerdictApproved {
		t.Errorf("%+v, %v", r, err)
	}
	b.mustCost(out)
	requests := b.model.Requests("main")
	last := requests[len(requests)-1]
	if out.Usage.Calls != 2 || out.Session != b.call.Session.ID || !strings.Contains(string(last.Body), "Change the greeting.") {
		t.Errorf("%d calls, session %s; it was asked %q", out.Usage.Calls, out.Session, last.LastUser)
	}
}

// TestKilledFromOutside has something else send the CLI a signal: while it waits for
// the model, and while it runs a command.
func TestKilledFromOutside(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal // sent while it waits for the model
		during string         // the command that it runs first
		reason forge.FailureReason
	}{
		{"INT while it waits", syscall.SIGINT, "true", forge.FailCrashed},
		{"TERM while it waits", syscall.SIGTERM, "true", forge.FailKilled},
		{"KILL while it waits", syscall.SIGKILL, "true", forge.FailKilled},
		{"INT during a command", 0, "kill -INT $PPID; sleep 30", forge.FailCrashed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, agent.RoleImplement, agenttest.Steps(
				agenttest.Use("Bash", object{"command": "echo $PPID >pid; " + tt.during}),
				func(r agenttest.Request) agenttest.Reply {
					data, _ := os.ReadFile(filepath.Join(r.Dir, "pid"))
					if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && tt.signal != 0 {
						_ = syscall.Kill(pid, tt.signal)
					}
					return agenttest.Reply{Fault: agenttest.HangStart}
				},
			))
			out, err := b.run()
			mustFail(t, err, tt.reason, "")
			b.mustCost(out)
			if file := sessionFiles(t, b); len(file) == 0 || out.Session != b.call.Session.ID {
				t.Errorf("session %q has the files %q", out.Session, file)
			}
		})
	}
}

// TestSubscriptionLimit has the headers of a limit that a subscription reached.
func TestSubscriptionLimit(t *testing.T) {
	b := newBench(t, agent.RoleReview, agenttest.Steps(agenttest.Always(agenttest.Reply{
		Status: http.StatusTooManyRequests, ErrorType: "rate_limit_error", Text: "slow down",
		Header: map[string]string{
			"Retry-After": "3600", "Anthropic-Ratelimit-Unified-Status": "rejected",
			"Anthropic-Ratelimit-Unified-Reset":                "1800000000",
			"Anthropic-Ratelimit-Unified-Representative-Claim": "five_hour",
		},
	})))
	b.call.Env = append(b.call.Env, "ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=test-token")
	_, err := b.run()
	mustFail(t, err, forge.FailQuota, "limit")
	if f := agent.AsFailure(err); !f.Until.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("until %s", f.Until)
	}
}
