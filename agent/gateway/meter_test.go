package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

//nolint:lll // one line is one event
const anthropicStream = `event: message_start
data: {"type":"message_start","message":{"model":"claude-sonnet-5","usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"\"usage\": {\"output_tokens\": 9999} {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":20}}

event: message_stop
data: {"type":"message_stop"}

`

func TestCount(t *testing.T) {
	all := forge.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 3, CacheWriteTokens: 4}
	event := func(s string) string { return "data: " + s + "\n\n" }
	for _, tt := range []struct {
		name   string
		p      Provider
		stream bool
		body   string
		model  string
		want   forge.Usage
	}{
		{"message", Anthropic, false, whole, "claude-sonnet-5", forge.Usage{InputTokens: 10, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4}},
		{"count_tokens", Anthropic, false, `{"input_tokens":77}`, "", forge.Usage{}},
		{"stream", Anthropic, true, anthropicStream, "claude-sonnet-5", all},
		{"stream with CRLF", Anthropic, true, strings.ReplaceAll(anthropicStream, "\n", "\r\n"), "claude-sonnet-5", all},
		{
			"stream cut", Anthropic, true, anthropicStream[:300],
			"claude-sonnet-5",
			forge.Usage{InputTokens: 10, OutputTokens: 1, CacheReadTokens: 3, CacheWriteTokens: 4},
		},
		{"garbage", Anthropic, true, event(`{"usage": nonsense`) + event(`{"type":"message_delta","usage":{"output_tokens":"x"}}`), "", forge.Usage{}},
		{
			"long line", Anthropic, true, event(`{"type":"message_delta","usage":{"output_tokens":5},"x":"`+strings.Repeat("x", maxEvent)+`"}`) + anthropicStream,
			"claude-sonnet-5",
			forge.Usage{InputTokens: 10, OutputTokens: 20, CacheReadTokens: 3, CacheWriteTokens: 4},
		},
		{
			"response", OpenAI, false, `{"model":"gpt-5-codex","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},"output_tokens":7}}`,
			"gpt-5-codex",
			forge.Usage{InputTokens: 60, OutputTokens: 7, CacheReadTokens: 40},
		},
		{
			"response stream", OpenAI, true, event(`{"type":"response.created","response":{"model":"gpt-5-codex","usage":null}}`) +
				event(`{"type":"response.completed","response":{"model":"gpt-5-codex","usage":{"input_tokens":100,"output_tokens":7}}}`),
			"gpt-5-codex",
			forge.Usage{InputTokens: 100, OutputTokens: 7},
		},
		{
			"chat stream", OpenAI, true, event(`{"model":"gpt-5","choices":[]}`) +
				event(`{"model":"gpt-5","usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":1}}}`) + event("[DONE]"),
			"gpt-5",
			forge.Usage{InputTokens: 99, OutputTokens: 7, CacheReadTokens: 1},
		},
		{
			"chunks", Gemini, true, event(`{"modelVersion":"gemini-2.5-pro","usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":1}}`) +
				event(`{"modelVersion":"gemini-2.5-pro","usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":9,`+
					`"thoughtsTokenCount":4,"cachedContentTokenCount":20}}`),
			"gemini-2.5-pro",
			forge.Usage{InputTokens: 30, OutputTokens: 13, CacheReadTokens: 20},
		},
	} {
		for _, size := range []int{1, 7, 1 << 30} {
			var model string
			var got forge.Usage
			m := meter{api: apis[tt.p], stream: tt.stream, length: -1, report: func(name string, more forge.Usage) {
				model, got = name, got.Add(more)
			}}
			for part := range slices.Chunk([]byte(tt.body), size) {
				m.read(part, false)
			}
			m.read(nil, true)
			if model != tt.model || got != tt.want {
				t.Errorf("%s in pieces of %d: %q %+v, want %q %+v", tt.name, size, model, got, tt.model, tt.want)
			}
		}
	}
}

func TestLimited(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		status int
		header []string
		want   time.Duration
	}{
		{200, []string{"Retry-After", "7"}, 0},
		{429, nil, 0},
		{429, []string{"Retry-After", "7"}, 7 * time.Second},
		{529, []string{"Retry-After", "0.5"}, 500 * time.Millisecond},
		{503, []string{"Retry-After", now.Add(time.Minute).Format(http.TimeFormat)}, time.Minute},
		{429, []string{"Retry-After", "soon"}, 0},
		{429, []string{"Retry-After", "1e300"}, 0},
		{429, []string{"Retry-After", "-5"}, 0},
		{
			429,
			[]string{
				"Retry-After", "7", "Anthropic-Ratelimit-Unified-Status", "rejected", "Anthropic-Ratelimit-Unified-Reset",
				strconv.FormatInt(now.Unix()+3600, 10),
			},
			time.Hour,
		},
	} {
		resp := &http.Response{StatusCode: tt.status, Header: http.Header{}}
		for i := 0; i < len(tt.header); i += 2 {
			resp.Header.Set(tt.header[i], tt.header[i+1])
		}
		got := limitedUntil(resp, now)
		if tt.want == 0 && !got.IsZero() || tt.want > 0 && !got.Equal(now.Add(tt.want)) {
			t.Errorf("%d %v: until %s, want in %s", tt.status, tt.header, got, tt.want)
		}
	}
}
