package claude_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

const good = `{"type":"result","subtype":"success","is_error":false,"structured_output":{"verdict":"approved"},"total_cost_usd":0.5,` +
	`"num_turns":2,"modelUsage":{"a":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheCreationInputTokens":4},"b":{"inputTokens":10}}}`

// TestResultClauses gives each clause of success a result that lacks just it.
func TestResultClauses(t *testing.T) {
	say := func(line string) string { return "echo '" + line + "'" }
	but := func(old, other string) string { return say(strings.Replace(good, old, other, 1)) }
	failed := func(fields string) string { return but(`"is_error":false`, `"is_error":true,`+fields) + "; exit 1" }
	said := func(kind string) string {
		return say(`{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[]},"error":"` + kind + `"}`)
	}
	for _, tt := range []struct {
		name, script string
		reason       forge.FailureReason // empty: success
		message      string
	}{
		{"good", say(good), "", ""},
		{"noise before and after", "echo noise; echo; " + say(good) + "; echo warning >&2", "", ""},
		{"exit status", say(good) + "; exit 3", forge.FailCrashed, "it ended with status 3"},
		{"exit by a signal", say(good) + "; kill -TERM $$", forge.FailKilled, "signal 15"},
		{"no output", "exit 0", forge.FailCrashed, "it ended with status 0 and without a result"},
		{"only a start", say(`{"type":"system","subtype":"init","model":"m"}`), forge.FailCrashed, "without a result"},
		{"garbage", "echo '{\"type\":'; echo why >&2", forge.FailCrashed, `printed something that is not a message: "{\"type\":"; why`},
		{"cut off", "printf '%s' '" + good[:100] + "'", forge.FailCrashed, "printed something that is not a message"},
		{"is_error", failed(`"result":"API Error: 503 no"`), forge.FailOverloaded, "503"},
		{"is_error with status 0", but(`"is_error":false`, `"is_error":true,"result":"odd"`), forge.FailCrashed, "odd"},
		{"401", failed(`"api_error_status":401`), forge.FailAuth, "set ANTHROPIC_API_KEY"},
		{"500", failed(`"api_error_status":500`), forge.FailOverloaded, ""},
		{"kind: login", said("authentication_failed") + ";" + failed(`"result":"x"`), forge.FailAuth, ""},
		{"kind: organization", said("oauth_org_not_allowed") + ";" + failed(`"result":"x"`), forge.FailAuth, ""},
		{"kind: billing", said("billing_error") + ";" + failed(`"result":"x"`), forge.FailQuota, ""},
		{"kind: rate", said("rate_limit") + ";" + failed(`"result":"x"`), forge.FailRateLimited, ""},
		{"kind: model", said("model_not_found") + ";" + failed(`"result":"x"`), forge.FailConfig, ""},
		{"kind: overloaded", said("overloaded") + ";" + failed(`"result":"x"`), forge.FailOverloaded, ""},
		{"not logged in", failed(`"result":"Not logged in · Please run /login"`), forge.FailAuth, ""},
		{"no way to the model", failed(`"result":"API Error: Unable to connect to API (ConnectionRefused)"`), forge.FailOverloaded, ""},
		{"413", failed(`"api_error_status":413,"result":"Request too large"`), forge.FailPromptTooLong, "too large"},
		{"400", failed(`"api_error_status":400,"result":"API Error: 400 odd"`), forge.FailCrashed, "400 odd"},
		{"404", failed(`"api_error_status":404`), forge.FailConfig, "set models in pfl-forge.yaml"},
		{"turns", but("success", "error_max_turns") + "; exit 1", forge.FailMaxTurns, ""},
		{"answers", but("success", "error_max_structured_output_retries") + "; exit 1", forge.FailInvalidOutput, "did not match the schema"},
		{"budget of a gateway", failed(`"result":"API Error: 400 the budget of this call is used up"`), forge.FailBudget, "is kept"},
		{"budget", but("success", "error_max_budget_usd") + "; exit 1", forge.FailBudget, "after $0.50"},
		{"no is_error", but(`"is_error":false,`, ``), forge.FailCrashed, ""},
		{"odd is_error", but(`"is_error":false`, `"is_error":"no"`), forge.FailCrashed, "not a message"},
		{"subtype", but("success", "error_during_execution"), forge.FailCrashed, "interrupted"},
		{"unknown subtype", but("success", "error_of_a_later_version"), forge.FailCrashed, "error_of_a_later_version"},
		{"no answer", but("structured_output", "other"), forge.FailInvalidOutput, "without an answer"},
		{"no structured answer", but(`"structured_output":{"verdict":"approved"}`, `"result":"fine"`), forge.FailInvalidOutput, "it said: fine"},
		{"null for an answer", but(`{"verdict":"approved"}`, `null,"result":"fine"`), forge.FailInvalidOutput, "it said: fine"},
		{"refusal", but(`"num_turns"`, `"stop_reason":"refusal","num_turns"`), forge.FailRefused, ""},
		{
			"taken for a command", say(`{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"Unknown command: /x"}`),
			forge.FailCrashed, "took the prompt for a command",
		},
		{"lost session", "echo 'No conversation found with session ID: x' >&2; exit 1", forge.FailLostSession, ""},
		{
			"lost session, told as a result",
			say(`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}`) + "; exit 1",
			forge.FailLostSession, "",
		},
		{"session in use", "echo 'Error: Session ID x is already in use.' >&2; exit 1", forge.FailLostSession, "already in use"},
		{"unknown flag", "echo \"error: unknown option '--json-schema'\" >&2; exit 1", forge.FailCLITooOld, "update it"},
		{"kill -9", "kill -9 $$", forge.FailKilled, "signal 9; the machine may be short of memory"},
		{"segmentation fault", "kill -SEGV $$", forge.FailKilled, "signal 11"},
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

// TestOlderResult is of the shape that nests cost and tokens; today's wins where both are.
func TestOlderResult(t *testing.T) {
	const older = `"cost":{"total_cost_usd":0.25},"context_window":{"total_input_tokens":7,"total_output_tokens":9}`
	for name, tt := range map[string]struct {
		fields string
		want   forge.Usage
	}{
		"older": {older, forge.Usage{InputTokens: 7, OutputTokens: 9, CostUSD: 0.25, Calls: 1}},
		"both": {
			older + `,"total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":2}`,
			forge.Usage{InputTokens: 1, OutputTokens: 2, CostUSD: 0.5, Calls: 1},
		},
	} {
		out, err := script(t, `echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"../s",`+tt.fields+`}'`,
			func(c *agent.Call) { c.Schema = nil })
		if diff := cmp.Diff(tt.want, out.Usage); diff != "" || err != nil || out.Text != "done" || strings.Contains(out.Session, "s") {
			t.Errorf("%s: %v, %+v\n%s", name, err, out, diff)
		}
	}
}

func TestQuotaSaysUntilWhen(t *testing.T) {
	_, err := script(t, `echo '{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1800000000"}'; exit 1`, nil)
	mustFail(t, err, forge.FailQuota, "usage limit")
	if f := agent.AsFailure(err); !f.Until.Equal(time.Unix(1_800_000_000, 0)) {
		t.Errorf("until %s", f.Until)
	}
}

func TestEmptyTextIsNoSuccess(t *testing.T) {
	_, err := script(t, `echo '{"type":"result","subtype":"success","is_error":false,"result":" "}'`, func(c *agent.Call) { c.Schema = nil })
	mustFail(t, err, forge.FailInvalidOutput, "without an answer")
}
