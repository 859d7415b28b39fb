package rest_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

func TestTitle(t *testing.T) {
	before := func(line string) string {
		if strings.HasPrefix(line, "WIP") {
			return "plain "
		}
		return ""
	}
	for _, test := range []struct {
		text   string
		before func(string) string
		want   string
	}{
		{" Fix\tthe\nlogin \xff", nil, "Fix the login"},
		{"WIP: fix", nil, "WIP: fix"},
		{"\nWIP: fix", before, "plain WIP: fix"},
		{"fix", before, "fix"},
		{strings.Repeat("ä", 20), nil, strings.Repeat("ä", 20)},
		{strings.Repeat("ä", 21), nil, strings.Repeat("ä", 19) + "…"},
		{"WIP" + strings.Repeat("ä", 18), before, "plain WIP" + strings.Repeat("ä", 10) + "…"},
	} {
		if got := rest.Title(test.text, 20, test.before); got != test.want {
			t.Errorf("%q is titled %q, want %q", test.text, got, test.want)
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
