package git

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// FuzzNames: what is taken for a name, a branch or a path can be nothing else for git, a shell's
// arguments and a terminal.
func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"fix-login-001", "feature/x", "-c", "a..b", "a/.git/hooks/x", "refs/heads/x", "a@{1}",
		"a\u202eb", "x.lock", strings.Repeat("a", 40),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseName(s); err == nil {
			if _, err := ParseBranch(string(n)); err != nil || !filepath.IsLocal(string(n)) || strings.ContainsAny(s, "/.") {
				t.Errorf("name %q: %v", s, err)
			}
		}
		if b, err := ParseBranch(s); err == nil {
			if b.Ref() != "refs/heads/"+s || strings.HasPrefix(s, "-") || strings.ContainsFunc(s, unicode.IsControl) || !filepath.IsLocal(s) {
				t.Errorf("branch %q", s)
			}
		}
		if p, err := ParsePath(s); err == nil && (!filepath.IsLocal(string(p)) || filepath.Clean(s) != s) {
			t.Errorf("path %q", s)
		}
		if o, err := ParseOID(s); err == nil && (string(o) != s || len(o.Short()) != 12) {
			t.Errorf("object %q", s)
		}
	})
}
