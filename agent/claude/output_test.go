package claude

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

func FuzzTranscript(f *testing.F) {
	for _, s := range []string{
		`{"type":"system","subtype":"init","session_id":"x","model":"\u001b[31m"}`,
		`{"type":"system","subtype":"api_retry","retry_delay_ms":1e300,"error_status":429}`,
		`{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","name":"Read","input":{"file_path":"/x"}}],"usage":{"input_tokens":-5}}}`,
		`{"type":"user","message":{"content":"text"},"tool_use_result":{"filePath":"/d/../x","structuredPatch":[]}}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"{}","num_turns":-1,"total_cost_usd":-2,"usage":{"input_tokens":-1}}`,
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"limit|1800000000"}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"a","model":"m","usage":{"input_tokens":5,"output_tokens":1}}}}
{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"thinking"}}}
{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"long text"}}}
{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":-9}}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":[{"type":"text","text":"no\u001b[0m"}]}]}}`,
		`{"type":"assistant","message":{"model":"<synthetic>"},"error":{"odd":1}}
{"type":"result","subtype":"success","is_error":true,"result":"resets Feb 31, 12:99pm (UTC)"}`,
		`{"type":"system","subtype":"status","status":"compacting"}`,
		"null\n[]\n{\n\"x\"",
	} {
		f.Add([]byte(s), 0)
	}
	f.Fuzz(func(t *testing.T, output []byte, code int) {
		tr := newOutputReader("/d", agent.NewSessionID(), func(e agent.Event) {
			for _, s := range []string{e.Text, e.Tool, e.Model, e.Session} {
				if s != term.Line(s) || !utf8.ValidString(s) {
					t.Errorf("%s event holds %q", e.Kind, s)
				}
			}
		})
		for line := range bytes.SplitSeq(output, []byte("\n")) {
			tr.onLine(line)
		}
		out := tr.outcome()
		u := out.Usage
		if min(u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.Turns) < 0 || u.CostUSD < 0 {
			t.Errorf("usage %+v", u)
		}
		if !agent.IsSessionID(out.Session) {
			t.Errorf("session %q", out.Session)
		}
		if failure := tr.failure(process.Report{ExitCode: code}); failure == nil {
			if tr.result == nil || code != 0 {
				t.Errorf("succeeded with status %d and result %v", code, tr.result)
			}
			_ = out.Answer
		}
	})
}
