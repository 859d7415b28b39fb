package rest_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

func TestTitle(t *testing.T) {
	for text, want := range map[string]string{
		" Fix\tthe\nlogin \xff": "Fix the login",
		"WIP: fix":              "WIP: fix",
		strings.Repeat("ä", 20): strings.Repeat("ä", 20),
		strings.Repeat("ä", 21): strings.Repeat("ä", 19) + "…",
	} {
		if got := rest.Title(text, 20); got != want {
			t.Errorf("%q is titled %q, want %q", text, got, want)
		}
	}
}

// A forge that tells drafts by their titles takes none for one that is not to be, whatever an
// agent calls it, and each that is.
func TestTitleOfADraft(t *testing.T) {
	drafts := rest.Drafts{Begin: "WIP: ", Known: []string{"WIP:", "[WIP]"}}
	for _, test := range []struct {
		text  string
		draft bool
		want  string
	}{
		{"fix", false, "fix"},
		{"fix", true, "WIP: fix"},
		{"\nwip: fix", false, "\u200bwip: fix"},
		{" [WIP]fix", false, "\u200b[WIP]fix"},
		{"WI", false, "WI"},
		{"WIP: fix", true, "WIP: WIP: fix"},
		{"WIP:" + strings.Repeat("ä", 16), false, "\u200bWIP:" + strings.Repeat("ä", 14) + "…"},
		{strings.Repeat("ä", 20), true, "WIP: " + strings.Repeat("ä", 14) + "…"},
	} {
		if got := drafts.Title(test.text, test.draft, 20); got != test.want {
			t.Errorf("%q is titled %q, want %q", test.text, got, test.want)
		} else if back := drafts.Wanted(got, test.draft); !strings.HasSuffix(got, "…") && back != strings.TrimSpace(test.text) {
			t.Errorf("%q is read as %q", got, back)
		}
	}
}

func TestBranches(t *testing.T) {
	if err := rest.Branches("main", "forge/fix-001"); err != nil {
		t.Errorf("branches are refused: %v", err)
	}
	for _, name := range []git.Branch{"", "..", "a..b", "owner:main", "a b"} {
		if err := rest.Branches("main", name); err == nil {
			t.Errorf("%q is taken for a branch", name)
		}
	}
}
