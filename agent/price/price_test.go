package price_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

const million = 1_000_000

func TestCost(t *testing.T) {
	each := forge.Usage{InputTokens: million, OutputTokens: million, CacheReadTokens: million, CacheWriteTokens: million}
	for _, tt := range []struct {
		model string
		want  float64
		known bool
	}{
		{"claude-sonnet-5", 3 + 15 + 0.3 + 3.75, true},
		{"claude-haiku-4-5-20251001", 1 + 5 + 0.1 + 1.25, true},
		{"claude-opus-4-1-20250805", 15 + 75 + 1.5 + 18.75, true},
		{"anthropic/Claude-Opus-4-8", 5 + 25 + 0.5 + 6.25, true},
		{"gpt-5.4-mini", 2.5 + 15 + 0.25, true},
		{"sonnet", 15 + 75 + 1.5 + 18.75, false},
		{"", 15 + 75 + 1.5 + 18.75, false},
	} {
		if _, known := price.Of(tt.model); known != tt.known {
			t.Errorf("%q: known is %t", tt.model, known)
		}
		if got := price.Cost(tt.model, each); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("%q costs %g, want %g", tt.model, got, tt.want)
		}
	}
}
