package cli_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

func TestTools(t *testing.T) {
	for _, tt := range []struct {
		tools    string
		readOnly bool
		want     cli.Tools
		wrong    string // part of the error
	}{
		{"", false, cli.Tools{}, ""},
		{"Bash Read Edit Read", false, cli.Tools{Files: []string{"Read", "Edit"}, Shell: true}, ""},
		{"Bash Read Edit Bash(go test:*) Edit(src/*)", true, cli.Tools{Files: []string{"Read"}}, ""},
		{"Bash", true, cli.Tools{}, ""},
		{"WebFetch Grep", false, cli.Tools{Files: []string{"Grep"}}, ""},
		{"Bash(go:*) Bash(make:*)", false, cli.Tools{Commands: []string{"go", "make"}}, ""},
		{"Bash(go:*) Bash", false, cli.Tools{Shell: true}, ""},
		{"WebFetch mcp__x", false, cli.Tools{}, "opencode has none of the tools WebFetch, mcp__x; it knows Write,"},
		{"Bash(go:*) Bash(go)", false, cli.Tools{}, "cannot be limited to Bash(go); give"},
		{"Bash(*)", false, cli.Tools{}, "cannot be limited to Bash(*)"},
		{"Bash(*:*)", false, cli.Tools{}, "cannot be limited to Bash(*:*)"},
		{"Edit(src/*)", false, cli.Tools{}, "cannot be limited to Edit(src/*)"},
	} {
		turn := cli.Turn{Call: agent.Call{Tools: strings.Fields(tt.tools), ReadOnly: tt.readOnly}}
		got, err := turn.ParseTools("opencode")
		if tt.wrong != "" {
			if f := agent.AsFailure(err); f == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, tt.wrong) {
				t.Errorf("%s: got %v, want %q", tt.tools, err, tt.wrong)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.tools, err, diff)
		}
	}
}
