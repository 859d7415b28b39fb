package cli_test

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

// TestClassify has messages of real CLIs.
func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		status int
		said   string
		want   forge.FailureReason // empty: not recognized
	}{
		{0, "unexpected status 401 Unauthorized: no, url: http://127.0.0.1:1/v1/responses", forge.FailAuth},
		{0, "Missing environment variable: `OPENAI_API_KEY`.", forge.FailAuth},
		{0, "exceeded retry limit, last status: 429 Too Many Requests", forge.FailRateLimited},
		{0, "Quota exceeded. Check your plan and billing details.", forge.FailQuota},
		{0, "You’ve hit your usage limit. Try again later.", forge.FailQuota},
		{0, "We’re currently experiencing high demand, which may cause temporary errors.", forge.FailOverloaded},
		{0, "Selected model is at capacity. Please try a different model.", forge.FailOverloaded},
		{0, "unexpected status 529 <unknown status code>: busy", forge.FailOverloaded},
		{0, "Codex ran out of room in the model's context window. Start a new thread.", forge.FailPromptTooLong},
		{0, "error: unexpected argument '--nonsense' found", forge.FailCLITooOld},
		{0, "Error: Unknown feature flag: nonsense", forge.FailCLITooOld},
		{0, "Unknown argument: nonsense\nUsage: gemini", forge.FailCLITooOld},
		{0, `[API Error: {"error":{"code":401,"message":"said","status":"UNAUTHENTICATED"}}]`, forge.FailAuth},
		{0, `[API Error: {"error":{"code":500,"message":"said","status":"INTERNAL"}}]`, forge.FailOverloaded},
		{429, "[API Error: said]\nPlease wait and try again later. To increase your limits, request a quota increase", forge.FailRateLimited},
		{404, "[API Error: said NOT_FOUND]", forge.FailConfig},
		{0, "The model `gpt-9` does not exist or you do not have access to it.", forge.FailConfig},
		{0, "stream disconnected before completion: error sending request", forge.FailOverloaded},
		{0, "Segmentation fault", ""},
		{0, "it wrote 500 lines and 404 words", ""},
	} {
		f := cli.Classify(tt.status, tt.said)
		if f == nil && tt.want != "" || f != nil && f.Reason != tt.want {
			t.Errorf("%d %s: got %v, want %s", tt.status, tt.said, f, tt.want)
		}
	}
}

func TestUntil(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"You've hit your usage limit. Try again in 2 hours 30 minutes.": 150 * time.Minute,
		"usage limit: try again in 3 days, 4 hours and 5 minutes":       76*time.Hour + 5*time.Minute,
		"Quota exceeded. Please retry in 41.5s.":                        41 * time.Second,
		"Your quota will reset after some time; retry in 90 parsecs":    0,
		"usage limit. Try again later.":                                 0,
		"usage limit. Try again in 99999999999 days":                    0,
	} {
		before := time.Now()
		f := cli.Classify(0, said)
		switch {
		case f == nil:
			t.Errorf("%s: not known", said)
		case want == 0 && !f.Until.IsZero():
			t.Errorf("%s: until %s", said, f.Until)
		case want > 0 && (f.Until.Before(before.Add(want-2*time.Second)) || f.Until.After(time.Now().Add(want+time.Second))):
			t.Errorf("%s: until %s, want in %s", said, f.Until, want)
		}
	}
	at := time.Unix(1_900_000_000, 0)
	for _, said := range []string{`usage limit; "resets_at": 1900000000`, "usage limit, try again at " + at.UTC().Format(time.RFC3339)} {
		if f := cli.Classify(0, said); f == nil || !f.Until.Equal(at) {
			t.Errorf("%s: got %+v", said, f)
		}
	}
}
