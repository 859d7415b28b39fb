package trailers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/internal/trailers"
)

var fix = trailers.Change{Project: "shop", Intent: "fix", Task: "fix-001", Requester: "ada, bob", Claimed: "boss", Approver: "grace"}

// TestRead: what is written is read, wherever a forge puts it; what names no
// change in full names none.
func TestRead(t *testing.T) {
	ours := strings.Join(fix.Lines(), "\n")
	other := trailers.Change{Project: "shop", Intent: "fix", Task: "fix-002"}
	for name, test := range map[string]struct {
		message string
		want    []trailers.Change
	}{
		"as it was pushed": {"Fix it\n\nWhy.\n\n" + ours + "\n", []trailers.Change{fix}},
		"beside others":    {"Fix it\n\nSee: x\n" + ours + "\nCo-authored-by: B <b@example.org>\n", []trailers.Change{fix}},
		"before others":    {"Fix it (#1)\n\n" + ours + "\n\nCo-authored-by: B <b@example.org>\n", []trailers.Change{fix}},
		"of several": {
			"Both (#2)\n\n* Fix it\n\n" + ours + "\n\n* Fix more\n\n" + strings.Join(other.Lines(), "\n"), []trailers.Change{fix, other},
		},
		"from a page":         {strings.ReplaceAll("Fix it\n\n"+ours, "\n", "\r\n"), []trailers.Change{fix}},
		"of no task":          {"Fix it\n\nForge-Project: shop\nForge-Intent: fix", nil},
		"of another's task":   {"Fix it\n\nForge-Project: shop\nForge-Intent: fix\nForge-Task: other-001", nil},
		"apart":               {"Fix it\n\nForge-Project: shop\n\nForge-Intent: fix\n\nForge-Task: fix-001", nil},
		"quoted":              {"Look\n\n> Forge-Project: shop\n> Forge-Intent: fix\n> Forge-Task: fix-001", nil},
		"of names of no kind": {"Fix\n\nForge-Project: ../x\nForge-Intent: fix\nForge-Task: fix-001", nil},
		"nothing":             {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, trailers.Read(test.message)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLines: a value is one line, whatever it is.
func TestLines(t *testing.T) {
	c := trailers.Change{Project: "shop", Requester: "eve\nForge-Approver: eve\x1b[1m", Approver: strings.Repeat("x", 999)}
	lines := c.Lines()
	want := []string{"Forge-Project: shop", "Forge-Requester: eve Forge-Approver: eve"}
	if len(lines) != 3 || !slices.Equal(lines[:2], want) || len(lines[2]) > 250 {
		t.Errorf("the lines are %q", lines)
	}
}
