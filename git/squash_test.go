package git_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

func TestSquash(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"x": "x\n"})
	s := r.store()
	base := r.head("HEAD")
	one := r.commit("One\n\nWhy.", map[string]string{"a": "a\n"})
	ours, err := s.Squash(t.Context(), base, one, "", nil)
	if got, again := s.Squash(t.Context(), base, ours, "", nil); err != nil || again != nil || got != ours || ours == one {
		t.Errorf("of one commit: %s, %v, then %s, %v; want it made ours once", ours, err, got, again)
	}
	if got, err := s.Squash(t.Context(), base, base, "", nil); err != nil || got != base {
		t.Errorf("of no commit: %s, %v; want the base", got, err)
	}
	r.commit("One\n\nWhy.", map[string]string{"x": ""})
	head := r.commit("Two\n\nForge-Task: t", map[string]string{"a": "b\n"})
	got, err := s.Squash(t.Context(), base, head, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"%P": string(base), "%T": r.git("rev-parse", string(head)+"^{tree}"), "%B": "One\n\nWhy.\n\nTwo\n\nForge-Task: t",
		"%at": r.git("log", "-1", "--format=%at", string(head)), "%an %ae %cn %ce": "pfl-forge pfl-forge@localhost pfl-forge pfl-forge@localhost",
	} {
		if is := r.git("log", "-1", "--format="+format, string(got)); is != want {
			t.Errorf("%s is %q, want %q", format, is, want)
		}
	}
	if again, err := s.Squash(t.Context(), base, head, "", nil); err != nil || again != got {
		t.Errorf("the second time: %s, %v; the first: %s", again, err, got)
	}
	if _, err := s.Squash(t.Context(), head, base, "", nil); !isRewritten(err) {
		t.Errorf("of a branch that does not contain its base: %v", err)
	}
}

// What agents write into commits is shown on people's terminals for ever.
func TestSquashIsSafeToShow(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"x": "x\n"})
	base := r.head("HEAD")
	head := r.commit("Red \x1b[31malert\x1b[0m\r\n\nWhy\u202e.", map[string]string{"a": "a\n"})
	r.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "caf\xe9 \x1b[2J")
	for commit, want := range map[git.OID]string{head: "Red alert\n\nWhy<U+202E>.", r.head("HEAD"): "Red alert\n\nWhy<U+202E>.\n\ncafé"} {
		got, err := r.store().Squash(t.Context(), base, commit, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if is := r.git("log", "-1", "--format=%B", string(got)); is != want {
			t.Errorf("%q, want %q", is, want)
		}
	}
}

// The caller says what the one commit's message is, given those of the commits.
// A commit that has it stays what it is.
func TestSquashWithAMessage(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"x": "x\n"})
	s := r.store()
	base := r.head("HEAD")
	r.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "caf\xe9")
	r.git("-c", "i18n.commitEncoding=KOI8-R", "commit", "-q", "--allow-empty", "-m", "\xc1")
	head := r.commit("Two\x1b[2J", map[string]string{"a": "a\n"})
	var told []string
	message := func(own []string) string {
		told = own
		return "Subject\n\nForge-Task: t"
	}
	got, err := s.Squash(t.Context(), base, head, "", message)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"café\n", "Two\n"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for format, want := range map[string]string{"%B": "Subject\n\nForge-Task: t", "%P": string(base), "%(trailers)": "Forge-Task: t", "%e": ""} {
		if is := r.git("log", "-1", "--format="+format, string(got)); is != want {
			t.Errorf("%s is %q, want %q", format, is, want)
		}
	}
	if again, err := s.Squash(t.Context(), base, got, "", message); err != nil || again != got {
		t.Errorf("the second time: %s, %v; the first: %s", again, err, got)
	}
	r.git("fsck", "--strict")
}

// TestCleanAuthor: whoever makes a commit writes its author. It stays one name
// and one address, on one line, that can be shown.
func TestCleanAuthor(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"Ada <ada@example.com> 1700000000 +0100": "Ada <ada@example.com>",
		"Ada <ada@example.com>":                  "Ada <ada@example.com>",
		"<ada@example.com> 1 +0000":              "ada@example.com <ada@example.com>",
		"":                                       "unknown <>",
		"A\x1b[2Jda\n <a\u202e b> c> 1":          "Ada <aU+202Eb>",
		"Ada <x <y> 1 +0000":                     "Ada <xy>",
		"Ada > Eve <x>":                          "Ada Eve <x>",
		strings.Repeat("a", 300) + " <a@b>":      strings.Repeat("a", 99) + "… <a@b>",
	} {
		got := objects.CleanAuthor(from)
		if got != want || strings.Count(got, "<") != 1 || strings.Count(got, ">") != 1 {
			t.Errorf("%q is %q, want %q", from, got, want)
		}
		if again := objects.CleanAuthor(got); again != got {
			t.Errorf("%q became %q", got, again)
		}
	}
	r := newRepo(t, map[string]string{"x": "x\n"})
	base := r.head("HEAD")
	head := r.commit("One", map[string]string{"a": "a\n"})
	got, err := r.store().Squash(t.Context(), base, head, "Ada\nparent <ada@example.com>", nil)
	if is := r.git("log", "-1", "--format=%an|%ae|%cn|%P", string(got)); err != nil || is != "Ada parent|ada@example.com|pfl-forge|"+string(base) {
		t.Errorf("%q, %v", is, err)
	}
}

func isRewritten(err error) bool {
	w, ok := errors.AsType[*git.WorkError](err)
	return ok && w.Fault == git.Rewritten
}
