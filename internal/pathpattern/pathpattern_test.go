package pathpattern

import "testing"

func TestMatch(t *testing.T) {
	patterns := []string{".claude/", "docs/rules/", "Makefile", "*.lock", "ci/*.yml"}
	for file, want := range map[string]bool{
		".claude/settings.json": true, "a/.claude/settings.json": true, "a/.CLAUDE/x": true, ".claude2/x": false, "x.claude/y": false,
		// A link in the place of a protected directory leads to files that are not protected.
		".claude": true, "a/.claude": true, "docs/rules": true, "a/docs/rules": false,
		"docs/rules/a.md": true, "docs/rules.md": false, "sub/docs/rules/a.md": false,
		"Makefile": true, "sub/makefile": true, "Makefile.old": false,
		"yarn.lock": true, "a/yarn.lock": true, "ci/test.yml": true, "ci/a/test.yml": false,
	} {
		if got := Any(patterns, file); got != want {
			t.Errorf("%s: matched %v, want %v", file, got, want)
		}
	}
}
