package telemetry

import (
	"strings"
	"testing"
)

// What is printed as a link is one that a person can follow, and nothing that steers a terminal.
func TestParseTraceURL(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"https://traces.example.com/t/{trace_id}":                         "https://traces.example.com/t/abc",
		"http://localhost:16686/trace/{trace_id}?x={trace_id}#{trace_id}": "http://localhost:16686/trace/abc?x=abc#abc",
		`https://g.example.com/explore?left={"q":"{trace_id}"}`:           `https://g.example.com/explore?left={"q":"abc"}`,
	} {
		got, err := ParseTraceURL(text)
		if err != nil || got.Of("abc") != want {
			t.Errorf("%q: %q, %v", text, got.Of("abc"), err)
		}
		if got.Of("") != "" {
			t.Errorf("%q: without a trace there is %q", text, got.Of(""))
		}
	}
	for text, want := range map[string]string{
		"https://traces.example.com/":                                        "has no {trace_id}",
		"https://traces.example.com/{traceID}":                               "has no {trace_id}",
		"javascript:alert('{trace_id}')":                                     "no https or http address",
		"file:///etc/{trace_id}":                                             "no https or http address",
		"traces.example.com/{trace_id}":                                      "no https or http address",
		"https:///{trace_id}":                                                "no https or http address",
		"https://{trace_id}.example.com/":                                    "is no address",
		"https://u:hunter2@example.com/{trace_id}":                           "leave user and password out",
		"https://example.com/\x1b]0;x\a{trace_id}":                           "percent-encoded",
		"https://example.com/{trace_id}\n  > rm -rf ~":                       "percent-encoded",
		"https://example.com/\u202e{trace_id}":                               "percent-encoded",
		"https://example.com/ä/{trace_id}":                                   "percent-encoded",
		"https://example.com/\xff{trace_id}":                                 "percent-encoded",
		"https://example.com/%zz/{trace_id}":                                 "is no address",
		"https://example.com/{trace_id}/" + strings.Repeat("a", maxTraceURL): "longer than",
	} {
		got, err := ParseTraceURL(text)
		if err == nil || !strings.Contains(err.Error(), want) || got != "" {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
			continue
		}
		if strings.ContainsAny(err.Error(), "\x1b\a\n") || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 500 {
			t.Errorf("%q: the error is %q", text, err)
		}
	}
}
