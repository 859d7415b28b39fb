package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
)

// TestSecondReviewer has the settings by which another reviewer is asked, and when.
func TestSecondReviewer(t *testing.T) {
	both := []forge.Risk{forge.RiskMed, forge.RiskHigh}
	for _, tt := range []struct {
		settings string
		want     forge.Reviewer
		when     []forge.Risk
	}{
		{"agent: claude", forge.Reviewer{}, both},
		{"review: {second: {agent: codex}}", forge.Reviewer{Agent: "codex"}, both},
		{"review: {second: {model: opus}}", forge.Reviewer{Agent: "claude", Model: "opus"}, both},
		{"review: {second: {agent: claude, model: opus, when: [high]}}", forge.Reviewer{Agent: "claude", Model: "opus"}, []forge.Risk{forge.RiskHigh}},
		{"roles: {review: gemini}\nreview: {second: {agent: claude}}", forge.Reviewer{Agent: "claude", Model: "sonnet"}, both},
		{"agents: {codex: {models: {default: o3}}}\nreview: {second: {agent: codex}}", forge.Reviewer{Agent: "codex", Model: "o3"}, both},
		// A step of the first's escalation that another back end would do is none of the second's.
		{"calls: {escalate: {review: [{model: o3}]}}\nreview: {second: {agent: codex, model: o3}}", forge.Reviewer{Agent: "codex", Model: "o3"}, both},
	} {
		p, err := config.Parse([]byte(tt.settings))
		if err != nil {
			t.Errorf("%q: %v", tt.settings, err)
			continue
		}
		if got := p.SecondReviewer(); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.settings, got, tt.want)
		}
		if diff := cmp.Diff(tt.when, p.Review.Second.When); diff != "" {
			t.Errorf("%q: %s", tt.settings, diff)
		}
	}
}
